/**
 * A whole run as a pure machine: the executions of its job, their metrics and verdicts, and timeouts for cores that do
 * not answer. The driver carries messages, starts and kills cores, and sends `tick` at `nextDeadline`; it contains no
 * rules.
 *
 *     events of cores ─▶ phases ─▶ commands to cores
 *                          │
 *                       aggregate ─▶ live view, summary, verdicts that end the run
 */

import { assertNever } from "../../base/assert.ts";
import { formatDuration } from "../../base/duration.ts";
import type { CoreCommand, CoreEvent, MergedFigures, Problem } from "../job/core-messages.ts";
import { type Fault, singleFault } from "../job/faults.ts";
import type { JobStatus } from "../job/job.ts";
import type { WorkflowManifest } from "../job/manifest.ts";
import type { LiveDetail, LiveRun, RunControl, RunPhase, RunProgress } from "../results/live.ts";
import type { LossDetails, LossFigures } from "../results/loss-figures.ts";
import type { RunSummary } from "../results/model.ts";
import type { RunAggregate } from "../results/run-aggregate.ts";
import { isScaleFactor } from "../results/scale-factor.ts";
import type { Agreement } from "./agreement.ts";
import type {
  AgreedStep,
  JointWait,
  JointWord,
  PhaseStep,
  PhasesEffect,
  PhasesInput,
} from "./phase-types.ts";
import { Phases } from "./phases.ts";
import {
  countsOf,
  type HeldFrame,
  type RunCounts,
  type ToldEnd,
  type ToldRun,
  toldWorkflows,
} from "./told-run.ts";

interface RunMachineOptions {
  readonly manifests: readonly WorkflowManifest[];
  /** `slots` are the cores, `pool` those of them that priorities share out. */
  readonly cores: { readonly slots: readonly number[]; readonly pool: number };
  readonly aggregate: RunAggregate;
  /** Agrees to steps at once; null when the driver does, with `agreed`. */
  readonly agreement: Agreement | null;
  /** Ends the run whatever its state; null for no limit. */
  readonly timeoutMs: number | null;
  /** False under a debugger: a silent core may be at a breakpoint there. */
  readonly limited: boolean;
  /** True when another part of the system handles the silence of this core; absent: none does. */
  readonly isAwaited?: (core: number) => boolean;
  /** When the run began, on the clock of `step`. */
  readonly beganAt: number;
}

export type RunInput =
  | { readonly kind: "start" }
  | { readonly kind: "event"; readonly core: number; readonly event: CoreEvent }
  /** Metrics of several cores at once; `from`: the worker that runs and merges them. */
  | { readonly kind: "figures"; readonly from: string; readonly figures: MergedFigures }
  /** `what`: core and reason, for people; `awaited`: another core may replace it. */
  | ({
      readonly kind: "coreLost";
      readonly core: number;
      readonly what: string;
      readonly awaited?: boolean;
    } & LossDetails)
  /** Another core replaces a lost one. */
  | {
      readonly kind: "coreJoined";
      readonly core: number;
      readonly instead: number;
      readonly worker: string;
      readonly dealt?: readonly string[];
    }
  /** No core replaces the lost one. */
  | { readonly kind: "coreForgone"; readonly core: number }
  | { readonly kind: "agreed"; readonly step: AgreedStep }
  /** The second stop ends at once. */
  | { readonly kind: "control"; readonly control: RunControl }
  /** Directive of the gate that merges the datacenters of a workflow. */
  | { readonly kind: "joint"; readonly word: JointWord }
  /** The time of the run is up, according to its timekeeper; `text` says why. */
  | { readonly kind: "timeOut"; readonly text: string }
  | { readonly kind: "tick" };

export type RunEffect =
  | { readonly kind: "send"; readonly core: number; readonly command: CoreCommand }
  | { readonly kind: "agree"; readonly step: PhaseStep }
  /** The core does not answer any more; its end arrives as `coreLost`. */
  | { readonly kind: "kill"; readonly core: number }
  /** A line from the run or from user code. */
  | { readonly kind: "message"; readonly line: string }
  | { readonly kind: "done"; readonly status: JobStatus };

type Searched = Extract<AgreedStep, { kind: "level" | "finish" }>;
type Input<Kind extends RunInput["kind"]> = Extract<RunInput, { kind: Kind }>;

/** Added to the graceful stop; later, whatever still runs is killed. */
const STOP_SLACK_MS = 1_500;
/** A core that runs a workflow reports ten times a second; it is given up after this silence. */
const SILENCE_MS_MAX = 30_000;
/** A tick later than this means that this process itself was stopped (Ctrl-Z) and received nothing. */
const OWN_STALL_MS = 5_000;
const NEVER = Number.POSITIVE_INFINITY;

export class RunMachine {
  readonly #options: RunMachineOptions;
  readonly #phases: Phases;
  readonly #aggregate: RunAggregate;
  readonly #heardAt = new Map<number, number>();
  #phaseReached: RunPhase = "starting";
  #interrupted = false;
  #mistake: Problem | undefined;
  #judgeAt = NEVER;
  #limitAt = NEVER;
  /** When cores that were ordered to stop are given up. */
  #giveUpAt = NEVER;
  #stopped = false;
  /** The end of the run has been requested, agreed or not. */
  #stopAsked = false;
  #effects: RunEffect[] = [];
  #now = 0;

  constructor(options: RunMachineOptions) {
    const { aggregate, cores, manifests } = options;
    this.#options = options;
    this.#aggregate = aggregate;
    this.#phases = new Phases(manifests, cores, aggregate);
  }

  /** Total: ignores unexpected, late and repeated inputs. */
  step(input: RunInput, now: number): readonly RunEffect[] {
    this.#effects = [];
    // Metrics of finished workflows may arrive until the summary is requested.
    const isLate = this.#phaseReached === "done";
    const isFigures =
      input.kind === "figures" || (input.kind === "event" && input.event.kind === "frame");
    if (isLate && !isFigures) return [];
    this.#setTime(now);
    switch (input.kind) {
      case "start":
        this.#start();
        break;
      case "event":
        this.#heardAt.set(input.core, now);
        this.#step(input);
        break;
      case "figures":
        for (const { core, heard } of input.figures.cores) if (heard) this.#heardAt.set(core, now);
        this.#step(input);
        break;
      case "coreLost":
        this.#onLost(input);
        break;
      case "coreJoined":
        this.#aggregate.coreJoined(input.core, input.instead, input.worker);
        this.#step(input);
        break;
      case "coreForgone":
        this.#step(input);
        break;
      case "agreed":
        this.#onAgreed(input.step);
        break;
      case "control":
        this.#onControl(input.control);
        break;
      case "joint":
        this.#step(input);
        break;
      case "timeOut":
        this.#onLimit(input.text);
        break;
      case "tick":
        this.#onTick();
        break;
      default:
        assertNever(input);
    }
    return this.#effects;
  }

  /** Shared queues that had values: they exist in this machine alone. */
  get queues(): readonly string[] {
    return this.#phases.shared.queues;
  }

  /** Workflows waiting for the gate that merges several datacenters. */
  get waits(): readonly JointWait[] {
    return this.#phases.joint.waits;
  }

  /** Adds a remark for the reader of the results. */
  note(text: string): void {
    this.#aggregate.note(text);
  }

  /**
   * Repeats all commands that cores may not have received; see `Phases`. Restarts their timeouts, since the cores
   * receive them only now.
   */
  repeat(now: number): readonly RunEffect[] {
    this.#setTime(now);
    this.#judgeAt = now + this.#aggregate.judgeEveryMs;
    if (this.#giveUpAt !== NEVER) this.#giveUpAt = now + this.#graceMs();
    for (const core of this.#phases.running.loadingCores()) this.#heardAt.set(core, now);
    return this.#phases.repeat(now).map((order) => ({ kind: "send", ...order }));
  }

  nextDeadline(): number | null {
    if (this.#phaseReached === "done") return null;
    const phases = this.#phases.nextDeadline() ?? NEVER;
    const at = Math.min(phases, this.#judgeAt, this.#limitAt, this.#giveUpAt);
    return at === NEVER ? null : at;
  }

  get phase(): RunPhase {
    const begun = this.#phaseReached === "starting" && this.#aggregate.anyStarted;
    return begun ? "running" : this.#phaseReached;
  }

  /** The first mistake of the user that kept a workflow from starting, when none started at all. */
  get mistake(): Problem | undefined {
    return this.#aggregate.anyStarted ? undefined : this.#mistake;
  }

  /** Live view for the screen, or for remote reporters. */
  live(now: number, detail: LiveDetail = "figures"): LiveRun {
    this.#setTime(now);
    return this.#aggregate.live(this.phase, detail);
  }

  /** Progress for reporters on this machine. */
  progress(now: number): RunProgress {
    this.#setTime(now);
    return this.#aggregate.progress();
  }

  summary(): RunSummary {
    const interrupted = this.#interrupted;
    return this.#aggregate.summary({ interrupted, ended: true, detail: "all" });
  }

  /** Increases with every finished call and every elapsed tick of a plan. (AD-34.8) */
  get advance(): number {
    const { measured } = this.#aggregate;
    return measured.reduce((sum, one) => sum + one.furthestMs, this.counts.requests);
  }

  get counts(): RunCounts {
    return countsOf(this.#aggregate);
  }

  /** `wall`: current wall-clock milliseconds. */
  tell(held: readonly HeldFrame[], now: number, wall: number): ToldRun {
    const wallMs = wall - (now - this.#options.beganAt);
    const workflows = toldWorkflows(this.#aggregate, held, wallMs);
    return { workflows, waits: this.waits };
  }

  /** Everything known when the run is over, with the remarks beside the metrics. */
  tellEnd(now: number, wall: number): ToldEnd {
    return { ...this.tell([], now, wall), remarks: this.#aggregate.remarks };
  }

  #setTime(now: number): void {
    this.#now = now;
    this.#aggregate.setTime(now - this.#options.beganAt);
  }

  #message(line: string): void {
    this.#effects.push({ kind: "message", line });
  }

  #start(): void {
    const { limited, timeoutMs } = this.#options;
    this.#judgeAt = this.#now + this.#aggregate.judgeEveryMs;
    if (timeoutMs !== null && limited) this.#limitAt = this.#now + timeoutMs;
    this.#step({ kind: "start" });
  }

  /** Runs a step of the executions and its consequences. */
  #step(input: PhasesInput): void {
    for (const effect of this.#phases.step(input, this.#now)) this.#perform(effect);
  }

  #perform(effect: PhasesEffect): void {
    switch (effect.kind) {
      case "send":
        // A prepared core reports nothing, and may have waited for long.
        if (effect.command.kind === "start") this.#heardAt.set(effect.core, this.#now);
        this.#effects.push(effect);
        return;
      case "agree":
        this.#onAgree(effect.step);
        return;
      case "log":
        this.#message(effect.line);
        return;
      case "abort":
        this.#onAbort(effect.workflow, effect.reason);
        return;
      case "problem":
        this.#mistake ??= effect.problem;
        return;
      case "done":
        this.#end(effect.status);
        return;
      default:
        assertNever(effect);
    }
  }

  #onAgree(step: PhaseStep): void {
    const { agreement } = this.#options;
    const agreed = agreement?.agree(step) ?? null;
    if (agreed !== null) this.#onAgreed(agreed);
    else if (agreement === null) this.#effects.push({ kind: "agree", step });
  }

  #onAgreed(step: AgreedStep): void {
    switch (step.kind) {
      case "stop":
        if (step.fault !== null) this.#aggregate.fault(step.workflow, step.fault);
        this.#stop();
        return;
      case "level":
      case "finish":
        this.#onProbe(step);
        return;
      default:
        this.#step({ kind: "agreed", step });
    }
  }

  #onProbe(step: Searched): void {
    const line = this.#aggregate.searched(step);
    if (line !== null) this.#message(line);
    this.#step(step);
  }

  /** Code of a workflow asks for the end; later requests are counted, too. */
  #onAbort(workflow: string, reason: string): void {
    const fault = singleFault("no code asked for the end", reason);
    this.#message(`"${workflow}" ends the run: ${reason}`);
    if (this.#stopAsked) this.#aggregate.fault(workflow, fault);
    else this.#askStop(workflow, fault);
  }

  /** Requests the stop once. */
  #askStop(workflow: string | null, fault: Fault | null): void {
    if (this.#stopAsked) return;
    this.#stopAsked = true;
    this.#onAgree({ kind: "stop", workflow, fault });
  }

  #end(status: JobStatus): void {
    if (this.#phaseReached === "done") return;
    this.#phaseReached = "done";
    this.#effects.push({ kind: "done", status });
  }

  /** Cost of losing a core, as far as it is known now. */
  lossOf(core: number, now: number): LossFigures {
    this.#setTime(now);
    return this.#aggregate.lossOf(core);
  }

  /** Whether a replacement of a lost core would have work to do. */
  awaits(core: number, now: number): boolean {
    return this.#phases.vacancies.isOfUse(core, now);
  }

  /** Adjusts for a clock that may be behind: earlier losses happened longer ago. */
  clockBehind(ms: number): void {
    this.#aggregate.losses.behind(ms);
  }

  /** Records since when a lost core generates no more load; null: unknown. */
  coreOver(core: number, at: number | null): void {
    this.#aggregate.losses.over(core, at === null ? null : at - this.#options.beganAt);
  }

  #onLost({ awaited = false, core, what, ...details }: Input<"coreLost">): void {
    // Killed because its setup did not end when the run was stopped: no load is lost with it.
    if (!this.#phases.running.hasOnlyStoppedSetUps(core))
      this.#aggregate.coreLost(core, what, details);
    this.#message(what);
    this.#step({ kind: "coreLost", core, awaited });
  }

  #onTick(): void {
    const now = this.#now;
    if (now >= (this.#phases.nextDeadline() ?? NEVER)) this.#step({ kind: "tick" });
    if (now >= this.#limitAt) {
      const { timeoutMs } = this.#options;
      this.#onLimit(`it took longer than ${formatDuration(timeoutMs ?? 0)}, its limit`);
    }
    if (now >= this.#giveUpAt) {
      this.#giveUpAt = NEVER;
      for (const core of this.#phases.running.stoppedCores()) this.#giveUp(core);
    }
    if (now < this.#judgeAt) return;
    if (now - this.#judgeAt > OWN_STALL_MS)
      for (const core of this.#heardAt.keys()) this.#heardAt.set(core, now);
    else this.#giveUpSilent();
    this.#judgeAt = now + this.#aggregate.judgeEveryMs;
    this.#judge();
  }

  #onLimit(text: string): void {
    this.#limitAt = NEVER;
    this.#message(`the run is ended: ${text}`);
    this.#askStop(null, singleFault("the run ended within its time limit", text));
  }

  #giveUpSilent(): void {
    const silentSince = this.#now - SILENCE_MS_MAX;
    for (const core of this.#phases.running.stuckCores(this.#now)) this.#giveUp(core);
    const isAwaited = this.#options.isAwaited ?? (() => false);
    for (const core of this.#phases.running.loadingCores())
      if ((this.#heardAt.get(core) ?? NEVER) < silentSince && !isAwaited(core)) this.#giveUp(core);
  }

  #judge(): void {
    const { abortedBy, searches } = this.#aggregate.decide();
    for (const { command, workflow } of searches) {
      const { probe } = command;
      if (command.kind === "finish") this.#onAgree({ kind: "finish", workflow, probe });
      else this.#onAgree({ kind: "level", workflow, load: command.load, probe });
    }
    if (abortedBy.length > 0) this.#askStop(null, null);
  }

  /** Stops gracefully, with a limit: code that never awaits cannot be asked to end. */
  #stop(): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#stopAsked = true;
    this.#phaseReached = "stopping";
    this.#aggregate.losses.isCutShort = true;
    this.#giveUpAt = this.#now + this.#graceMs();
    this.#step({ kind: "stop" });
  }

  #graceMs(): number {
    return Math.max(...this.#options.manifests.map((one) => one.gracefulStopMs)) + STOP_SLACK_MS;
  }

  #giveUp(core: number): void {
    if (!this.#options.limited) return;
    this.#message(
      `executor core ${core} does not answer: code in the workflow keeps it busy or never ends`,
    );
    this.#effects.push({ kind: "kill", core });
  }

  #onControl(control: RunControl): void {
    switch (control.kind) {
      case "pause":
        if (this.phase !== "running" && this.phase !== "starting") return;
        this.#phaseReached = "paused";
        this.#step(control);
        this.#aggregate.paused();
        return;
      case "resume":
        if (this.phase !== "paused") return;
        this.#phaseReached = this.#aggregate.anyStarted ? "running" : "starting";
        this.#step(control);
        this.#aggregate.resumed();
        return;
      case "scale":
        if (!isScaleFactor(control.factor)) return;
        this.#step(control);
        this.#aggregate.scaled(control.factor);
        return;
      case "stop":
        this.#interrupt();
        return;
      default:
        assertNever(control);
    }
  }

  /** The first interrupt ends gracefully, the second at once. */
  #interrupt(): void {
    if (this.#interrupted) {
      this.#aggregate.givenUp();
      this.#end("interrupted");
      return;
    }
    this.#interrupted = true;
    this.#message("stopping: waiting for work in flight (again to stop at once)");
    this.#stop();
  }
}
