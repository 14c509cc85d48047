/**
 * State of the group of one job in its datacenter: everything that must survive the manager that leads it. (`run/ID`)
 *
 *     begin ─▶ adopt ─▶ open (cores of workers) ─▶ start ─▶ steps of its executions, losses, controls … ─▶ end
 *
 * Decisions are kept in order: a new leader replays them without sending anything and reaches the state of the old one.
 * A leader starts with `adopt`: entries before it belong to its predecessors, entries after it to itself. A placement
 * is made when it is folded in: its token is the view of its entry x 2^20 + the placements of the job so far.
 */

import { assert } from "../../base/assert.ts";
import { encodePlain } from "../../base/plain-value.ts";
import { clipText } from "../../base/text.ts";
import type { Application, GroupKind, Operation } from "../../ledger/node/application.ts";
import type { AgreedStep, PhaseStep } from "../../load/execution/phase-types.ts";
import type { Control, Submission } from "../messages.ts";
import { type JobLimit, type TimeoutTracking, track, UNTRACKED } from "../overload/job-timeout.ts";
import { type Grant, mayRun } from "./datacenter-state.ts";
import { type BlockStep, GivenBlocks } from "./given-blocks.ts";
import { MANAGER_RULES, type ManagerRules } from "./rules.ts";
import {
  type Adoption,
  type Decision,
  decodeRunEntry,
  RUN_ENTRY_BYTES_MAX,
  type RunCore,
  type RunEnd,
  type RunEntry,
} from "./run-entries.ts";
import { isSnapshot, type RunAttempt, type RunSnapshot } from "./run-snapshot.ts";
import { decodeShape } from "./shapes.ts";
import { decodeSubmission } from "./submission.ts";

export const RUN_PREFIX = "run/";
/** Maximum placements in one view. */
const TOKENS_PER_VIEW = 2 ** 20;
/** Maximum decisions of one job, excluding blocks of rows and iterations. */
const HISTORY_MAX = 10_000;
const SNAPSHOT_BYTES_MAX = 2_097_152;
/** Maximum size of all growing state; the rest of a snapshot is reserved for controls and the end. */
const KEPT_BYTES_MAX = 1_572_864;
/** Bytes of a list, a number or a field name, beside the texts of an entry. */
const FIELD_BYTES = 96;
/** Maximum size of controls: requests of users cannot end a job. */
const CONTROL_BYTES_MAX = 65_536;
const TEXT_CHARACTERS_MAX = 1_000;
const NAME_CHARACTERS_MAX = 200;
/** Leader changes that are remembered, the last ones. */
const ADOPTIONS_MAX = 100;
const NAME = /^[a-z0-9-]{1,96}$/;

type Outcome = { readonly outcome: string; readonly reason: string | null };
type Entry<Kind extends RunEntry["kind"]> = Extract<RunEntry, { kind: Kind }>;

const rejected = (reason: string): Outcome => ({ outcome: "rejected", reason });
const accepted = (outcome: string): Outcome => ({ outcome, reason: null });

export class RunState implements Application {
  readonly #rules: ManagerRules;
  #createdAt = 0;
  #waitedMs = 0;
  #view = 0;
  #at = 0;
  #bytes: Uint8Array | null = null;
  #submission: Submission | null = null;
  #grants: readonly Grant[] = [];
  #cores: RunCore[] = [];
  /** The same by number: every event of a worker looks up its cores. */
  readonly #coreOf = new Map<number, RunCore>();
  #placements = 0;
  #history: Decision[] = [];
  #adoptions: readonly Adoption[] = [];
  readonly #lost = new Set<number>();
  readonly #awaited = new Set<number>();
  readonly #joined = new Set<number>();
  #cancelled: string | null = null;
  #timeouts = UNTRACKED;
  #timedOut: string | null = null;
  #attempts: RunAttempt[] = [];
  #blocks = new GivenBlocks([]);
  #keptBytes = 0;
  #controlBytes = 0;
  #end: RunEnd | null = null;

  constructor(rules: ManagerRules = MANAGER_RULES) {
    this.#rules = rules;
  }

  /** Null before the job has begun. */
  get submission(): Submission | null {
    return this.#submission;
  }

  /** Wall-clock milliseconds of the manager that accepted the submission. */
  get createdAt(): number {
    return this.#createdAt;
  }

  /** How long the job had waited for cores when its group began. */
  get waitedMs(): number {
    return this.#waitedMs;
  }

  /** View of the leader that adopted the job last. */
  get view(): number {
    return this.#view;
  }

  /** Time of the run at its last entry. */
  get at(): number {
    return this.#at;
  }

  /** Grants at admission. */
  get grants(): readonly Grant[] {
    return this.#grants;
  }

  /** All cores that the job ever had. */
  get cores(): readonly RunCore[] {
    return this.#cores;
  }

  get lostCores(): ReadonlySet<number> {
    return this.#lost;
  }

  /** Lost cores that another one may replace. */
  get awaitedCores(): ReadonlySet<number> {
    return this.#awaited;
  }

  /** Cores that have replaced others. */
  get joinedCores(): ReadonlySet<number> {
    return this.#joined;
  }

  coreOf(core: number): RunCore | null {
    return this.#coreOf.get(core) ?? null;
  }

  /** Next unused core number. */
  get nextCore(): number {
    return Math.max(-1, ...this.#cores.map(({ core }) => core)) + 1;
  }

  get history(): readonly Decision[] {
    return this.#history;
  }

  /** Leaders of the job, in order. */
  get adoptions(): readonly Adoption[] {
    return this.#adoptions;
  }

  get isStarted(): boolean {
    return this.#history.some(({ kind }) => kind === "start");
  }

  /** Reason of the cancel; null when there is none. */
  get cancelled(): string | null {
    return this.#cancelled;
  }

  /** Clock and progress, as far as they survive a leader. (AD-34.2) */
  get timeouts(): TimeoutTracking {
    return this.#timeouts;
  }

  get limit(): JobLimit {
    return { timeoutMs: this.#submission?.timeoutMs ?? null, waitedMs: this.#waitedMs };
  }

  /** Reason of the timeout; null when there is none. */
  get timedOut(): string | null {
    return this.#timedOut;
  }

  /** Requested end of the job with its reason, if any. */
  get endAsked(): readonly [status: "CANCELLED" | "TIMED_OUT", reason: string] | null {
    if (this.#cancelled !== null) return ["CANCELLED", this.#cancelled];
    return this.#timedOut === null ? null : ["TIMED_OUT", this.#timedOut];
  }

  get attempts(): readonly RunAttempt[] {
    return this.#attempts;
  }

  get end(): RunEnd | null {
    return this.#end;
  }

  /** A step with the block that it was assigned; null when there is none. */
  given(step: BlockStep): AgreedStep | null {
    const block = this.#blocks.of(step);
    if (block === null) return null;
    const { from, last, to } = block;
    return step.kind === "grant" ? { ...step, from, to, last } : { ...step, from, to };
  }

  problemOf(data: Uint8Array): string | null {
    return decodeRunEntry(data) === null ? "not an entry of a run" : null;
  }

  apply({ data, view }: Operation): Outcome {
    const entry = decodeRunEntry(data);
    if (entry === null) return rejected("UNREADABLE");
    if (this.#end !== null) return rejected("ENDED");
    if (entry.kind === "begin") return this.#begin(entry);
    if (this.#submission === null) return rejected("NOT_BEGUN");
    if (entry.kind === "control") return this.#control(entry);
    // Proposed by a leader that was deposed before the commit: the next one decides for itself.
    if (entry.view !== view && this.#rules.staleViewRejected) return rejected("STALE_VIEW");
    if (entry.kind === "adopt") return this.#adopt(entry);
    if (entry.view !== this.#view) return rejected("NOT_ADOPTED");
    const at = this.#time(entry.at);
    switch (entry.kind) {
      case "open":
        return this.#open(entry.cores, data.length);
      case "start":
        if (this.isStarted) return rejected("STARTED_BEFORE");
        return this.#decide({ kind: "start", at }, data.length);
      case "step":
        return this.#step(entry, data.length);
      case "coreLost":
        return this.#coreLost(entry, at);
      case "coreJoined":
      case "coreForgone":
        return this.#replaced(entry, at);
      case "timeouts":
        if (this.#timedOut !== null || this.#cancelled !== null) return rejected("ENDING");
        this.#timeouts = track(this.#timeouts, entry.change, at, this.limit);
        return accepted("tracked");
      case "end":
        return this.#finish(entry);
    }
  }

  /** Never goes back, whatever the clocks of leaders say. */
  #time(at: number): number {
    this.#at = Math.max(this.#at, at);
    return this.#at;
  }

  #begin({ createdAt, grants, submission, waitedMs }: Entry<"begin">): Outcome {
    if (this.#submission !== null) return accepted("begun");
    const decoded = decodeSubmission(submission);
    if (decoded === null) return rejected("UNREADABLE");
    this.#createdAt = createdAt;
    this.#waitedMs = waitedMs;
    this.#grants = grants;
    this.#keptBytes = submission.length + grants.length * FIELD_BYTES;
    this.#take(submission, decoded);
    return accepted("begun");
  }

  #take(bytes: Uint8Array, submission: Submission): void {
    this.#bytes = bytes;
    this.#submission = submission;
    this.#blocks = new GivenBlocks(submission.manifests);
  }

  #adopt({ at, by = "", view }: Entry<"adopt">): Outcome {
    this.#view = view;
    const adoption = { at: this.#time(at), view, by: clipText(by, NAME_CHARACTERS_MAX) };
    if (this.#adoptions.at(-1)?.view !== view)
      this.#adoptions = [...this.#adoptions, adoption].slice(-ADOPTIONS_MAX);
    return accepted("adopted");
  }

  #open(cores: readonly RunCore[], bytes: number): Outcome {
    const taken = cores.some(({ core: one }) => this.#coreOf.has(one));
    if (taken) return rejected("CORE_TAKEN");
    if (!this.#keep(bytes)) return rejected("TOO_LARGE");
    this.#cores.push(...cores);
    for (const one of cores) this.#coreOf.set(one.core, one);
    return accepted("opened");
  }

  #step({ at, step, view }: Entry<"step">, bytes: number): Outcome {
    if (step.kind === "grant" || step.kind === "numbers") return this.#give(step);
    if (step.kind === "place" || step.kind === "deal")
      return this.#place(step, this.#time(at), view);
    const decided = this.#decide({ kind: "step", at: this.#time(at), step }, bytes);
    if (decided.outcome !== "rejected" && step.kind === "finished")
      this.#close(step.workflow, step.core, "finished");
    return decided;
  }

  #give(step: BlockStep): Outcome {
    if (!this.#keep(this.#blocks.bytesFor(step))) return rejected("TOO_LARGE");
    return this.#blocks.give(step) ? accepted("given") : rejected("UNKNOWN_WORKFLOW");
  }

  #place(step: Extract<PhaseStep, { kind: "place" | "deal" }>, at: number, view: number): Outcome {
    const cores = step.kind === "place" ? step.cores : [step.core];
    const number = this.#rules.tokensUnique ? this.#placements : 0;
    const execution = view * TOKENS_PER_VIEW + number;
    assert(Number.isSafeInteger(execution), "a token fits 53 bits");
    const agreed: AgreedStep = { ...step, execution };
    const attempts = cores.map((core): RunAttempt => {
      const worker = this.coreOf(core)?.worker ?? "";
      // The loss may have been committed just before.
      const status = this.#lost.has(core) ? "lost" : "running";
      return { workflow: step.workflow, worker, core, token: execution, status };
    });
    const perCore = 2 * FIELD_BYTES + 3 * step.workflow.length;
    const decided = this.#decide({ kind: "step", at, step: agreed }, perCore * cores.length);
    if (decided.outcome === "rejected") return decided;
    this.#placements++;
    this.#attempts.push(...attempts);
    return accepted("placed");
  }

  #coreLost({ awaited, core, figures, what }: Entry<"coreLost">, at: number): Outcome {
    if (this.#lost.has(core)) return rejected("LOST_BEFORE");
    const text = clipText(what, TEXT_CHARACTERS_MAX);
    const decision = { kind: "coreLost", at, core, what: text, awaited, figures } as const;
    const decided = this.#decide(decision, 4 * FIELD_BYTES + 3 * text.length);
    if (decided.outcome === "rejected") return decided;
    this.#changeCores(decision);
    this.#close(null, core, "lost");
    return decided;
  }

  #replaced(entry: Entry<"coreJoined" | "coreForgone">, at: number): Outcome {
    const { core } = entry;
    const lost = entry.kind === "coreJoined" ? entry.instead : core;
    if (!this.#awaited.has(lost)) return rejected("NOT_AWAITED");
    if (entry.kind === "coreJoined" && this.#lost.has(core)) return rejected("LOST_BEFORE");
    const decision =
      entry.kind === "coreJoined"
        ? ({ kind: "coreJoined", at, core, instead: lost } as const)
        : ({ kind: "coreForgone", at, core } as const);
    const decided = this.#decide(decision, FIELD_BYTES);
    if (decided.outcome !== "rejected") this.#changeCores(decision);
    return decided;
  }

  #changeCores(decision: Decision): void {
    if (decision.kind === "coreLost") {
      this.#lost.add(decision.core);
      if (decision.awaited) this.#awaited.add(decision.core);
    } else if (decision.kind === "coreJoined") {
      this.#joined.add(decision.core);
      this.#awaited.delete(decision.instead);
    } else if (decision.kind === "coreForgone") this.#awaited.delete(decision.core);
  }

  /** Closes the running attempts on a core. */
  #close(workflow: string | null, core: number, status: "finished" | "lost"): void {
    this.#attempts = this.#attempts.map((one) =>
      one.core === core &&
      one.status === "running" &&
      (workflow === null || one.workflow === workflow)
        ? { ...one, status }
        : one,
    );
  }

  #control({ at, by, control }: Entry<"control">): Outcome {
    const isCancel = control.kind === "cancel";
    const asked =
      isCancel || control.kind === "timeOut"
        ? { ...control, reason: clipText(control.reason, TEXT_CHARACTERS_MAX) }
        : control;
    const decision = {
      kind: "control",
      at: this.#time(at),
      control: asked,
      by: clipText(by, NAME_CHARACTERS_MAX),
    } as const;
    const bytes = encodePlain(decision).length;
    const ends = control.kind === "timeOut" || (isCancel && this.#cancelled === null);
    const late = control.kind === "timeOut" ? this.#timeoutRejection(control) : null;
    if (late !== null) return rejected(late);
    if (this.#controlBytes + bytes > CONTROL_BYTES_MAX && !ends)
      return rejected("TOO_MANY_CONTROLS");
    this.#controlBytes += bytes;
    this.#history.push(decision);
    if (asked.kind === "cancel") this.#cancelled ??= asked.reason;
    if (asked.kind === "timeOut") this.#timedOut = asked.reason;
    return accepted("control");
  }

  /**
   * Why a proposed timeout does not apply: the proposer knew less than the log says now, and checks again. (AD-34.24,
   * C40-14, P4)
   */
  #timeoutRejection({ extendedMs, view }: Extract<Control, { kind: "timeOut" }>): string | null {
    if (this.#timedOut !== null || this.#cancelled !== null) return "ENDING";
    if (view !== this.#view) return "STALE_FENCE";
    const isCovered = extendedMs < this.#timeouts.extendedMs;
    return isCovered && this.#rules.extensionsCounted ? "EXTENDED_SINCE" : null;
  }

  #decide(decision: Decision, bytes: number): Outcome {
    if (this.#history.length >= HISTORY_MAX) return rejected("TOO_MANY_DECISIONS");
    if (!this.#keep(bytes)) return rejected("TOO_LARGE");
    this.#history.push(decision);
    return accepted(decision.kind);
  }

  #keep(bytes: number): boolean {
    if (this.#keptBytes + bytes > KEPT_BYTES_MAX) return false;
    this.#keptBytes += bytes;
    return true;
  }

  #finish({ calls, reason, status, summary }: Entry<"end">): Outcome {
    const clipped = reason === null ? null : clipText(reason, TEXT_CHARACTERS_MAX);
    this.#end = { status, reason: clipped, summary, ...(calls === undefined ? {} : { calls }) };
    return accepted("ended");
  }

  snapshot(): Uint8Array {
    const snapshot: RunSnapshot = {
      ...{ createdAt: this.#createdAt, waitedMs: this.#waitedMs },
      ...{ view: this.#view, at: this.#at },
      submission: this.#bytes,
      grants: this.#grants,
      cores: this.#cores,
      placements: this.#placements,
      history: this.#history,
      adoptions: this.#adoptions,
      attempts: this.#attempts,
      blocks: this.#blocks.snapshot(),
      ...{ keptBytes: this.#keptBytes, controlBytes: this.#controlBytes },
      end: this.#end,
      timeouts: this.#timeouts,
    };
    return encodePlain(snapshot);
  }

  restore(bytes: Uint8Array): boolean {
    const snapshot = decodeShape<RunSnapshot>(bytes, isSnapshot);
    if (snapshot === null) return false;
    const { submission } = snapshot;
    const decoded = submission === null ? null : decodeSubmission(submission);
    if (submission !== null && decoded === null) return false;
    this.#createdAt = snapshot.createdAt;
    this.#waitedMs = snapshot.waitedMs;
    this.#view = snapshot.view;
    this.#at = snapshot.at;
    this.#bytes = null;
    this.#submission = null;
    if (submission !== null && decoded !== null) this.#take(submission, decoded);
    const blocks = this.#rules.leasesKept ? snapshot.blocks : null;
    this.#blocks = new GivenBlocks(decoded?.manifests ?? [], blocks);
    this.#grants = snapshot.grants;
    this.#cores = [...snapshot.cores];
    this.#coreOf.clear();
    for (const one of this.#cores) this.#coreOf.set(one.core, one);
    this.#placements = snapshot.placements;
    this.#restoreHistory(snapshot.history);
    this.#adoptions = snapshot.adoptions ?? [];
    this.#attempts = [...snapshot.attempts];
    this.#keptBytes = snapshot.keptBytes;
    this.#controlBytes = snapshot.controlBytes;
    this.#end = snapshot.end;
    this.#timeouts = snapshot.timeouts ?? UNTRACKED;
    return true;
  }

  #restoreHistory(history: readonly Decision[]): void {
    this.#history = [...history];
    for (const cores of [this.#lost, this.#awaited, this.#joined]) cores.clear();
    for (const decision of history) this.#changeCores(decision);
    const cancels = history.flatMap((one) =>
      one.kind === "control" && one.control.kind === "cancel" ? [one.control.reason] : [],
    );
    this.#cancelled = cancels[0] ?? null;
    this.#timedOut =
      history.flatMap((one) =>
        one.kind === "control" && one.control.kind === "timeOut" ? [one.control.reason] : [],
      )[0] ?? null;
  }
}

export function runKind(rules: ManagerRules): GroupKind {
  return {
    prefix: RUN_PREFIX,
    operationBytesMax: RUN_ENTRY_BYTES_MAX,
    snapshotBytesMax: SNAPSHOT_BYTES_MAX,
    found: (name) => (NAME.test(name) ? new RunState(rules) : null),
    mayBegin: mayRun,
  };
}

export const RUN_KIND = runKind(MANAGER_RULES);
