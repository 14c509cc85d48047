/**
 * One run merged from the reports of several datacenters: their frames are merged like those of cores, so that totals
 * and percentiles cover all calls (GREQ-7). Thresholds are evaluated here, on the merged metrics: a window counts once
 * every datacenter has passed its end, or is five seconds behind.
 *
 * Contains nothing but reported data. A new leader of the job, or of one of its parts, gets everything again.
 */

import { isoText } from "../../base/civil.ts";
import type { HeldFrame, ToldRun, ToldWorkflow } from "../../load/execution/told-run.ts";
import type { LiveDetail, LiveRun, RunPhase } from "../../load/results/live.ts";
import type { RunSummary, WorkflowStatus } from "../../load/results/model.ts";
import { RunAggregate, type RunRemarks } from "../../load/results/run-aggregate.ts";
import type { Submission } from "../messages.ts";
import type { JobPart } from "./job-parts.ts";
import type { LastFigures } from "./lost-parts.ts";

interface MergedOptions {
  readonly job: string;
  readonly submission: Submission;
  readonly errorKinds: readonly string[];
  readonly version: string;
  /** Wall-clock milliseconds. */
  readonly startAtMs: number;
  readonly parts: readonly JobPart[];
}

export const ENDED_WORKFLOWS: readonly WorkflowStatus[] = [
  "completed",
  "failed",
  "interrupted",
  "not run",
];

interface MergedWorkflow {
  /** Indexes of the datacenters that run it. */
  readonly places: readonly number[];
  readonly ended: Map<number, ToldWorkflow>;
  readonly startedAtMs: Map<number, number>;
}

export class MergedRun {
  readonly datacenters: readonly string[];
  readonly #aggregate: RunAggregate;
  readonly #workflows: ReadonlyMap<string, MergedWorkflow>;
  readonly #held = new Map<string, readonly HeldFrame[]>();
  readonly #startAtMs: number;
  #wall: number;

  constructor(options: MergedOptions) {
    const { errorKinds, job, parts, startAtMs, submission, version } = options;
    const { abortAfterMs, command, manifests, name, tags, thresholds, title } = submission;
    this.datacenters = parts.map(({ datacenter }) => datacenter);
    this.#startAtMs = startAtMs;
    this.#wall = startAtMs;
    const machine = { node: "", platform: "", cpuModel: "", cpus: 0 };
    this.#aggregate = new RunAggregate({
      runId: job,
      ...{ name, tags, manifests, thresholds, abortAfterMs, errorKinds },
      title: title ?? undefined,
      startedAt: isoText(startAtMs),
      // A datacenter takes the role of a core.
      environment: { ...machine, hyperscale: version, cores: parts.length, command },
    });
    this.#workflows = new Map(
      this.#aggregate.measured.map(({ manifest }) => [
        manifest.name,
        { places: placesOf(manifest, parts), ended: new Map(), startedAtMs: new Map() },
      ]),
    );
  }

  /** Wall-clock milliseconds. */
  setTime(wall: number): void {
    this.#wall = wall;
    this.#aggregate.setTime(Math.max(0, wall - this.#startAtMs));
  }

  get judgeEveryMs(): number {
    return this.#aggregate.judgeEveryMs;
  }

  /** Frames received from a datacenter, so that it sends only newer data. */
  heldOf(datacenter: string): readonly HeldFrame[] {
    return this.#held.get(datacenter) ?? [];
  }

  take(datacenter: string, { workflows }: Pick<ToldRun, "workflows">): void {
    const place = this.datacenters.indexOf(datacenter);
    if (place < 0) return;
    const held = workflows.flatMap((one) => {
      const frame = this.#frame(place, one);
      return frame === null ? [] : [{ workflow: one.name, frame }];
    });
    this.#held.set(datacenter, held);
  }

  #frame(place: number, report: ToldWorkflow): number | null {
    const { frame, name, startedAtMs, status, timing, vitals } = report;
    const merged = this.#workflows.get(name);
    if (merged?.places.includes(place) !== true) return null;
    if (startedAtMs !== null) this.#begin(name, merged, place, startedAtMs);
    const held = this.#aggregate.frame(name, place, frame, vitals);
    const measured = this.#aggregate.measured.find((one) => one.manifest.name === name);
    if (merged.places[0] === place) measured?.adopt(timing);
    if (measured !== undefined && report.hasLostLoad === true) measured.hasLostLoad = true;
    if (ENDED_WORKFLOWS.includes(status)) this.#end(name, merged, place, report);
    return held;
  }

  /** Starts a workflow for all its datacenters with the first report: windows wait for the others. */
  #begin(name: string, merged: MergedWorkflow, place: number, startedAtMs: number): void {
    const isNew = merged.startedAtMs.size === 0;
    merged.startedAtMs.set(place, startedAtMs);
    if (!isNew) return;
    const wall = this.#wall;
    this.setTime(startedAtMs);
    this.#aggregate.workflowStarted(name, merged.places);
    this.setTime(wall);
  }

  #end(name: string, { ended, places }: MergedWorkflow, place: number, report: ToldWorkflow): void {
    if (ended.has(place)) return;
    ended.set(place, report);
    this.#aggregate.coreFinished(name, place);
    if (ended.size < places.length) return;
    const all = [...ended.values()];
    const worst =
      all.find(({ status }) => status === "failed") ??
      all.find(({ status }) => status === "interrupted") ??
      report;
    this.#aggregate.workflowFinished(name, worst.status, worst.error);
  }

  /** Last reported state of a datacenter; null if there is none. */
  lastOf(datacenter: string): LastFigures | null {
    const place = this.datacenters.indexOf(datacenter);
    if (!this.#held.has(datacenter)) return null;
    const nowMs = this.#wall - this.#startAtMs;
    const shares = this.#aggregate.measured.flatMap((one) => {
      const { name: workflow } = one.manifest;
      const isOwn = this.#workflows.get(workflow)?.places.includes(place);
      return isOwn === true ? [{ workflow, ...one.shareOf(place, nowMs) }] : [];
    });
    const users = shares.reduce((sum, one) => sum + one.users, 0);
    const measured = shares.map(({ measuredMs: ms, workflow }) => ({ workflow, ms }));
    return { datacenter, users, measured };
  }

  /** A datacenter will report nothing more: windows do not wait for it. */
  close(datacenter: string): void {
    const place = this.datacenters.indexOf(datacenter);
    for (const [name, { places }] of this.#workflows)
      if (places.includes(place)) this.#aggregate.coreFinished(name, place);
  }

  /** Thresholds that abort the run. `floors`: no datacenter is silent, so no calls are missing. */
  decide(floors: boolean): readonly string[] {
    return this.#aggregate.decide(floors).abortedBy;
  }

  live(phase: RunPhase, detail: LiveDetail): LiveRun {
    return this.#aggregate.live(phase, detail);
  }

  /**
   * Milliseconds between the first and the last start of a workflow over its datacenters; the largest of all workflows.
   */
  get startSkewMs(): number {
    const skews = [...this.#workflows.values()].map(({ startedAtMs }) => {
      const all = [...startedAtMs.values()];
      return all.length < 2 ? 0 : Math.max(...all) - Math.min(...all);
    });
    return Math.max(0, ...skews);
  }

  remark({ counted, faults, notes }: RunRemarks): void {
    for (const note of notes) this.#aggregate.note(note);
    for (const one of counted) this.#aggregate.countedNote(one);
    for (const { fault, workflow } of faults) this.#aggregate.fault(workflow, fault);
  }

  /** Final summary of everything reported. */
  summary(interrupted: boolean): RunSummary {
    for (const [name, { ended, places }] of this.#workflows)
      if (ended.size < places.length)
        this.#aggregate.workflowFinished(name, "interrupted", "a datacenter was lost");
    this.#aggregate.decide(true);
    return this.#aggregate.summary({ interrupted, ended: true, detail: "all" });
  }
}

/** A flow of a mix runs where its mix does. */
function placesOf(
  { mix, name }: { readonly mix: { readonly name: string } | null; readonly name: string },
  parts: readonly JobPart[],
): readonly number[] {
  const of = mix?.name ?? name;
  return [...parts.entries()].flatMap(([place, { submission }]) =>
    submission.manifests.some((one) => one.name === of) ? [place] : [],
  );
}
