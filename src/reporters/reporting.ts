/**
 * All reporters of one run, beside its view. They are isolated: one that throws, hangs or rejects is named in the
 * outcome and delays neither the run nor the others. (REP-5)
 */

import { errorText } from "../core/base/error-text.ts";
import type { RunProgress } from "../core/load/results/live.ts";
import type { ReportOutcome, RunSummary } from "../core/load/results/model.ts";
import { FrameBuilder } from "./frame.ts";
import { CLOSE_MS_MAX, INTERVAL_MS_DEFAULT, START_MS_MAX } from "./limits.ts";
import type { Frame, Reporter, RunInfo, SampledCalls, WorkflowPhase } from "./reporter.ts";
import { ReporterError } from "./settings.ts";

/** Time for a reporter to notice the deadline of its own pipeline. */
const GRACE_MS = 2_000;

/** Reporters with the same interval share their frames. */
interface Group {
  readonly everyMs: number;
  readonly frames: FrameBuilder;
  readonly members: readonly Member[];
  nextMs: number;
}

interface Member {
  readonly reporter: Reporter;
  problem: string | null;
}

export class Reporting {
  readonly #members: readonly Member[];
  readonly #groups: readonly Group[];
  readonly #end = new AbortController();
  #finished: Promise<RunSummary> | undefined;

  constructor(reporters: readonly Reporter[]) {
    this.#members = reporters.map((reporter) => ({ reporter, problem: null }));
    const byTime = new Map<number, Member[]>();
    for (const member of this.#members) {
      if (member.reporter.interval === undefined) continue;
      const everyMs = member.reporter.everyMs ?? INTERVAL_MS_DEFAULT;
      byTime.set(everyMs, [...(byTime.get(everyMs) ?? []), member]);
    }
    this.#groups = [...byTime].map(([everyMs, members]) => ({
      ...{ everyMs, members, nextMs: everyMs },
      frames: new FrameBuilder(),
    }));
  }

  /** Whether any reporter wants live progress. */
  get isLive(): boolean {
    return this.#groups.length > 0;
  }

  /** Share of single calls wanted; 0 if no reporter asks. */
  get sampledShare(): number {
    return Math.max(0, ...this.#members.map(({ reporter }) => reporter.sampledShare ?? 0));
  }

  calls(sampled: SampledCalls): void {
    for (const { reporter } of this.#members) reporter.calls?.(sampled);
  }

  /** Fails with the first reporter that cannot work: nothing has run yet. */
  async start(run: RunInfo): Promise<void> {
    const started = await Promise.allSettled(
      this.#members.map(async ({ reporter }) =>
        within(START_MS_MAX, reporter.start(run, this.#end.signal)),
      ),
    );
    const failed = started.findIndex(({ status }) => status === "rejected");
    if (failed < 0) return;
    await this.abandon();
    const { name } = this.#members[failed]?.reporter ?? { name: "" };
    const result = started[failed];
    const why = result?.status === "rejected" ? errorText(result.reason) : "";
    throw new ReporterError(why.startsWith("report ") ? why : `report ${name}: ${why}`);
  }

  /** Whether a reporter is due at this time of the run. */
  isDue(elapsedMs: number): boolean {
    return this.#groups.some(({ nextMs }) => elapsedMs >= nextMs);
  }

  /** Reports the current state of the run, with latencies. */
  progress(progress: RunProgress, elapsedMs: number): void {
    for (const group of this.#groups) {
      if (elapsedMs < group.nextMs) continue;
      group.nextMs += group.everyMs * Math.ceil((elapsedMs - group.nextMs + 1) / group.everyMs);
      const frame = group.frames.next(progress.summary, Date.now(), progress);
      for (const member of group.members) give(member, frame);
    }
  }

  /** Continues a run that another process reported up to here: sends only what is new. */
  resume(progress: RunProgress): void {
    for (const { frames } of this.#groups) frames.next(progress.summary, Date.now(), progress);
  }

  /** Returns the summary with delivery counts; further calls return the same. */
  finish(summary: RunSummary, phases: readonly WorkflowPhase[] = []): Promise<RunSummary> {
    this.#finished ??= this.#finish(summary, phases);
    return this.#finished;
  }

  async #finish(summary: RunSummary, phases: readonly WorkflowPhase[]): Promise<RunSummary> {
    if (this.#members.length === 0) return summary;
    const endMs = Date.parse(summary.startedAt) + Math.round(summary.durationSeconds * 1_000);
    for (const group of this.#groups) {
      const frame = group.frames.next(summary, endMs, null);
      for (const member of group.members) give(member, frame);
    }
    const [last, first] = [true, false].map((wanted) =>
      this.#members.filter(({ reporter }) => (reporter.last ?? false) === wanted),
    );
    await Promise.all((first ?? []).map((member) => this.#ended(member, summary, phases)));
    const complete = { ...summary, reports: (first ?? []).map(outcomeOf) };
    await Promise.all((last ?? []).map((member) => this.#ended(member, complete, phases)));
    this.#end.abort();
    return { ...summary, reports: this.#members.map(outcomeOf) };
  }

  async #ended(
    member: Member,
    summary: RunSummary,
    phases: readonly WorkflowPhase[],
  ): Promise<void> {
    const { reporter } = member;
    const { signal } = this.#end;
    const works = [
      () => reporter.finish(summary, summary.verdict, phases),
      () => reporter.close(),
    ] as const;
    for (const work of works)
      try {
        await within(CLOSE_MS_MAX + GRACE_MS, work(), signal);
      } catch (error) {
        member.problem = errorText(error);
      }
  }

  /** Stops waiting for back-ends: points not accepted within a short grace period count as dropped. */
  hurry(): void {
    this.#end.abort();
  }

  /** Closes without results: the run never began, or broke. */
  async abandon(): Promise<void> {
    this.#end.abort();
    await Promise.allSettled(
      this.#members.map(({ reporter }) => within(CLOSE_MS_MAX, reporter.close())),
    );
  }
}

function give(member: Member, frame: Frame): void {
  try {
    member.reporter.interval?.(frame);
  } catch (error) {
    member.problem = errorText(error);
  }
}

function outcomeOf({ problem, reporter }: Member): ReportOutcome {
  const { name, target } = reporter;
  const counts = reporter.counts?.() ?? { sent: 0, dropped: 0, problem: null };
  return {
    ...{ reporter: name, target },
    sent: counts.sent,
    dropped: counts.dropped,
    ...(counts.unconfirmed === true ? { unconfirmed: true } : {}),
    problem: problem ?? counts.problem,
  };
}

/** The signal cuts the wait to a short grace period. */
async function within(ms: number, work: Promise<void>, signal?: AbortSignal): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  let hurry = (): void => {};
  const late = new Promise<never>((_, reject) => {
    const arm = (leftMs: number): void => {
      clearTimeout(timer);
      const problem = `it was not done within ${leftMs / 1_000} s`;
      timer = setTimeout(() => reject(new Error(problem)), leftMs);
    };
    arm(signal?.aborted === true ? GRACE_MS : ms);
    hurry = () => arm(GRACE_MS);
  });
  signal?.addEventListener("abort", hurry);
  try {
    await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", hurry);
  }
}
