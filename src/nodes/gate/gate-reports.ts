/**
 * Reporters of a gate: those of its configuration, opened for each job that it leads. They receive the gate's job
 * updates, never delay it, and never change how a job ends. (C30-18, REP-5)
 */

import { errorText } from "../../core/base/error-text.ts";
import type { JobReport, ReportedRun } from "../../core/cluster/gate/job-report.ts";
import { type Metric, metricFamily } from "../../host/control/prometheus.ts";
import type { Log } from "../../host/ports/log.ts";
import type { Reporting } from "../../reporters/reporting.ts";

/** How often the gate is polled for updates. */
export const REPORT_LOOK_MS = 500;
/** Jobs reported at the same time; for others only the end is reported, and they are counted. */
const JOBS_MAX = 64;
/** Placeholder for the job id in a target. */
const JOB_PLACE = "{job}";

const { counter } = metricFamily("hyperscale_gate_reports_");

interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: Log;
}

interface Reported {
  /** Null: it could not be opened. */
  readonly opening: Promise<Reporting | null>;
  reporting: Reporting | null;
  readonly beganMs: number;
  /** Whether to skip what another gate has already reported. */
  resumes: boolean;
}

export class GateReports {
  readonly #texts: readonly string[];
  readonly #around: Surroundings;
  readonly #jobs = new Map<string, Reported>();
  readonly #ends = new Set<Promise<void>>();
  #sent = 0;
  #dropped = 0;
  #passedOver = 0;

  constructor(texts: readonly string[], around: Surroundings) {
    this.#texts = texts;
    this.#around = around;
  }

  get isWanted(): boolean {
    return this.#texts.length > 0;
  }

  /** Rejects with what can never work, before the gate serves. */
  async check(): Promise<void> {
    if (!this.isWanted) return;
    const reporting = await this.#opened("job");
    const { sampledShare } = reporting;
    await reporting.abandon();
    if (sampledShare > 0)
      throw new Error("reports: single calls are only had of `hyperscale run`: leave out samples");
  }

  take(report: JobReport): void {
    switch (report.kind) {
      case "running":
        this.#progress(report);
        return;
      case "ended":
        this.#track(this.#end(report));
        return;
      case "left":
        this.#track(this.#leave(report.job));
        return;
    }
  }

  /** Flushes pending reports within their time limit. */
  async close(): Promise<void> {
    for (const job of this.#jobs.keys()) this.#track(this.#leave(job));
    await Promise.all(this.#ends);
  }

  metrics(): readonly Metric[] {
    if (!this.isWanted) return [];
    return [
      counter("points_sent_total", "Points of jobs that reporters have sent", this.#sent),
      counter("points_dropped_total", "Points that no reporter could send", this.#dropped),
      counter(
        "jobs_passed_over_total",
        "Jobs of which only the end was reported",
        this.#passedOver,
      ),
    ];
  }

  #progress({ isTakenOver, job, live, run }: Extract<JobReport, { kind: "running" }>): void {
    const reported = this.#jobs.get(job) ?? this.#open(job, run, isTakenOver);
    const { beganMs, reporting, resumes } = reported ?? {};
    if (reported === undefined || reporting === null || reporting === undefined) return;
    const elapsedMs = performance.now() - (beganMs ?? 0);
    if (resumes === true) reporting.resume(live);
    else if (reporting.isDue(elapsedMs)) reporting.progress(live, elapsedMs);
    reported.resumes = false;
  }

  #open(job: string, run: ReportedRun, resumes: boolean): Reported | undefined {
    if (this.#jobs.size >= JOBS_MAX) {
      this.#passedOver++;
      return undefined;
    }
    const opening = this.#started(job, run);
    const reported: Reported = { opening, reporting: null, beganMs: performance.now(), resumes };
    this.#jobs.set(job, reported);
    this.#track(
      opening.then((reporting) => {
        reported.reporting = reporting;
      }),
    );
    return reported;
  }

  async #started(job: string, run: ReportedRun): Promise<Reporting | null> {
    try {
      const reporting = await this.#opened(job);
      await reporting.start(run);
      return reporting;
    } catch (error) {
      this.#around.log.event("error", "report.failed", { job, problem: errorText(error) });
      return null;
    }
  }

  async #opened(job: string): Promise<Reporting> {
    const { env, log } = this.#around;
    // Reporters are loaded only if one is configured.
    const { openReporting } = await import("../../reporters/registry.ts");
    return openReporting(
      this.#texts.map((text) => text.replaceAll(JOB_PLACE, job)),
      {
        env,
        onProblem: (reporter, problem) =>
          log.event("warn", "report.problem", { job, reporter, problem }),
      },
    );
  }

  async #end({ isTakenOver, job, run, summary }: Extract<JobReport, { kind: "ended" }>) {
    const known = this.#jobs.get(job);
    this.#jobs.delete(job);
    // A job that finished between two polls has not been reported at all.
    const opening = known?.opening ?? (summary === null ? null : this.#started(job, run));
    const reporting = await opening;
    if (reporting === null) return;
    if (summary === null) {
      await reporting.abandon();
      return;
    }
    if (known === undefined ? isTakenOver : known.resumes)
      reporting.resume({ summary, workflows: [] });
    const { reports = [] } = await reporting.finish(summary);
    for (const { dropped, problem, reporter, sent } of reports) {
      this.#sent += sent;
      this.#dropped += dropped;
      this.#around.log.event(problem === null ? "info" : "warn", "report.done", {
        ...{ job, reporter, sent, dropped },
        ...(problem === null ? {} : { problem }),
      });
    }
  }

  async #leave(job: string): Promise<void> {
    const known = this.#jobs.get(job);
    this.#jobs.delete(job);
    await (await known?.opening)?.abandon();
  }

  #track(work: Promise<void>): void {
    const tracked = work
      .catch((error: unknown) => {
        this.#around.log.event("error", "report.failed", { problem: errorText(error) });
      })
      .finally(() => this.#ends.delete(tracked));
    this.#ends.add(tracked);
  }
}
