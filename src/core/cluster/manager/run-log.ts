/**
 * The leader's way into the log of its job: every entry says in whose view and when it was decided. What can
 * never be committed is a problem of the job, which could not go on without it.
 */

import type { Control } from "../messages.ts";
import { wishName } from "../wish.ts";
import { type ManagerContext, runGroup } from "./context.ts";
import type { Proposed } from "./proposals.ts";
import { type Decided, encodeRunEntry, RUN_ENTRY_BYTES_MAX, type RunEntry } from "./run-entries.ts";
import type { RunState } from "./run-state.ts";

interface LogListener {
  /** An entry is in the log, or never will be. */
  onSettled(eventId: string): void;
  /** The job had ended before this leader could adopt it. */
  onEndedBefore(): void;
  onProblem(kind: RunEntry["kind"], problem: string): void;
}

/** Who asks for something, and under which name however often it is asked for; without one it is done each time. */
export interface AskedBy {
  readonly by: string;
  readonly wish?: string | undefined;
}

export class RunLog {
  readonly #job: string;
  readonly #view: number;
  readonly #state: RunState;
  readonly #context: ManagerContext;
  readonly #listener: LogListener;
  /** Entries that are neither in the log nor refused. */
  readonly #open = new Set<string>();
  /** Why the job is cancelled, before that stands in the log; null: nobody asks for it. */
  cancelling: string | null = null;
  readonly #heardBeganAt: () => number | null;
  #beganAt: number;

  constructor(
    { job, view }: { readonly job: string; readonly view: number },
    state: RunState,
    context: ManagerContext,
    /** As the entries that this process has folded in say; null when it has not seen one. */
    heardBeganAt: () => number | null,
    listener: LogListener,
  ) {
    this.#job = job;
    this.#view = view;
    this.#state = state;
    this.#context = context;
    this.#listener = listener;
    this.#heardBeganAt = heardBeganAt;
    this.#beganAt = heardBeganAt() ?? context.now - elapsedMs(state, context);
  }

  /** When the group of the job began, on the clock of this process. */
  get beganAt(): number {
    return this.#beganAt;
  }

  /** By how much that clock may be behind those of leaders before: a process that was down has not counted on. */
  get behindMs(): number {
    const { now, wall } = this.#context;
    const { createdAt, waitedMs } = this.#state;
    return Math.max(0, wall - createdAt - waitedMs - (now - this.#beganAt));
  }

  /** When the job was accepted, on the same clock. */
  get acceptedAt(): number {
    return this.#beganAt - this.#state.waitedMs;
  }

  /** The group begins. */
  begin(): void {
    this.#beganAt = this.#context.now;
  }

  /**
   * Everything that leaders before have decided stands in the log. Some of it this process may have heard of only
   * now: its clock is not behind what the log says, or shares would join a plan that is over.
   */
  adopted(): void {
    const heard = this.#heardBeganAt() ?? Number.POSITIVE_INFINITY;
    this.#beganAt = Math.min(this.#beganAt, this.#context.now - this.#state.at, heard);
  }

  /** The time of the run. */
  get at(): number {
    return Math.max(this.#state.at, Math.floor(this.#context.now - this.#beganAt));
  }

  /** What follows is this leader's. */
  adopt(): void {
    this.propose({ kind: "adopt", by: this.#context.options.self });
  }

  propose(decided: Decided): void {
    this.#propose({ ...decided, view: this.#view, at: this.at }, null);
  }

  /** The entries that this proposes and that are not settled yet. */
  during(work: () => void): readonly string[] {
    const before = new Set(this.#open);
    work();
    return [...this.#open].filter((eventId) => !before.has(eventId));
  }

  /** `hasStopped`: load was stopped by a cancel that may not be in the log. */
  proposeControl(
    control: Control,
    { by, wish }: AskedBy,
    done: (proposed: Proposed) => void,
    hasStopped: () => boolean = () => false,
  ): void {
    const isCancel = control.kind === "cancel";
    if (isCancel) this.cancelling ??= control.reason;
    const told = (proposed: Proposed): void => {
      const isTaken = proposed.kind === "committed" && proposed.outcome !== "rejected";
      // Whoever asked is told to ask again, as before the job has begun, and does so only of one that goes on.
      if (isCancel && !isTaken && !hasStopped()) this.cancelling = null;
      done(proposed);
    };
    this.#propose({ kind: "control", at: this.at, control, by }, told, eventIdOf(wish));
  }

  /** `done`: a client waits for it. */
  #propose(
    entry: RunEntry,
    done: ((proposed: Proposed) => void) | null,
    eventId = this.#context.newEventId(),
  ): void {
    const data = encodeRunEntry(entry);
    if (data.length > RUN_ENTRY_BYTES_MAX) {
      const most = `at most ${RUN_ENTRY_BYTES_MAX} can be kept`;
      const problem = `a value of the workflow takes ${data.length} bytes; ${most}`;
      this.#listener.onProblem(entry.kind, problem);
      return;
    }
    const group = runGroup(this.#job);
    if (done !== null) {
      this.#context.proposeForClient(group, eventId, data, done);
      return;
    }
    this.#open.add(eventId);
    this.#context.propose(group, eventId, data, (proposed) => {
      this.#open.delete(eventId);
      this.#listener.onSettled(eventId);
      this.#onProposed(entry, proposed);
    });
  }

  #onProposed({ kind }: RunEntry, proposed: Proposed): void {
    const isOver = proposed.kind === "committed" && proposed.reason === "ENDED";
    if (kind === "adopt" && isOver) this.#listener.onEndedBefore();
    const problem = problemOf(proposed);
    if (problem !== null) this.#listener.onProblem(kind, problem);
  }
}

/** Why an entry will never take effect; null when it has, or when another leader decides now. */
function problemOf(proposed: Proposed): string | null {
  if (proposed.kind !== "committed") return proposed.message;
  if (proposed.outcome !== "rejected") return null;
  if (proposed.reason === "TOO_LARGE") return "what its workflows hand on is more than can be kept";
  return proposed.reason === "TOO_MANY_DECISIONS" ? "its log is full" : null;
}

/** How long the group of the job has been there, by the wall clocks of two managers. */
function elapsedMs(state: RunState, { wall }: ManagerContext): number {
  return Math.max(state.at, wall - state.createdAt - state.waitedMs);
}

/** The same however often it is wished for: the log takes one of them. Undefined: nobody names it. */
function eventIdOf(wish: string | undefined): string | undefined {
  return wish === undefined ? undefined : `wish/${wishName(wish)}`;
}
