/**
 * Proposes entries of a leader to the log of its job, each with the leader's view and time. An entry that can never be
 * committed becomes a problem of the job, which cannot continue without it.
 */

import type { Control } from "../messages.ts";
import { wishName } from "../wish.ts";
import { type ManagerContext, runGroup } from "./context.ts";
import type { Proposed } from "./proposals.ts";
import { type Decided, encodeRunEntry, RUN_ENTRY_BYTES_MAX, type RunEntry } from "./run-entries.ts";
import type { RunState } from "./run-state.ts";

interface LogListener {
  /** Called when an entry is committed or will never be. */
  onSettled(eventId: string): void;
  /** Called when the job had ended before this leader could adopt it. */
  onEndedBefore(): void;
  onProblem(kind: RunEntry["kind"], problem: string): void;
}

/** Author of a control, and its idempotency key; without a key it is applied each time. */
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
  /** Entries neither committed nor rejected. */
  readonly #open = new Set<string>();
  /** Reason of a cancel that is not in the log yet; null: none is pending. */
  cancelling: string | null = null;
  readonly #receivedBeganAt: () => number | null;
  #beganAt: number;

  constructor(
    { job, view }: { readonly job: string; readonly view: number },
    state: RunState,
    context: ManagerContext,
    /** From the entries that this process has folded in; null when it has seen none. */
    receivedBeganAt: () => number | null,
    listener: LogListener,
  ) {
    this.#job = job;
    this.#view = view;
    this.#state = state;
    this.#context = context;
    this.#listener = listener;
    this.#receivedBeganAt = receivedBeganAt;
    this.#beganAt = receivedBeganAt() ?? context.now - elapsedMs(state, context);
  }

  /** When the group of the job began, on the clock of this process. */
  get beganAt(): number {
    return this.#beganAt;
  }

  /** How far that clock may be behind those of previous leaders: it stops while its process is down. */
  get behindMs(): number {
    const { now, wall } = this.#context;
    const { createdAt, waitedMs } = this.#state;
    return Math.max(0, wall - createdAt - waitedMs - (now - this.#beganAt));
  }

  /** When the job was accepted, on the same clock. */
  get acceptedAt(): number {
    return this.#beganAt - this.#state.waitedMs;
  }

  /** Starts the clock when the group begins. */
  begin(): void {
    this.#beganAt = this.#context.now;
  }

  /**
   * Called when all decisions of previous leaders are in the log. Some may have arrived only now: the clock is advanced
   * to the time in the log, or shares would join a plan that is over.
   */
  adopted(): void {
    const receivedAt = this.#receivedBeganAt() ?? Number.POSITIVE_INFINITY;
    this.#beganAt = Math.min(this.#beganAt, this.#context.now - this.#state.at, receivedAt);
  }

  /** Time of the run. */
  get at(): number {
    return Math.max(this.#state.at, Math.floor(this.#context.now - this.#beganAt));
  }

  /** Commits that all following entries are this leader's. */
  adopt(): void {
    this.propose({ kind: "adopt", by: this.#context.options.self });
  }

  propose(decided: Decided): void {
    this.#propose({ ...decided, view: this.#view, at: this.at }, null);
  }

  /** Entries proposed by `work` that are not settled yet. */
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
      // The client is asked to retry, as before the job began, and retries only while the job goes on.
      if (isCancel && !isTaken && !hasStopped()) this.cancelling = null;
      done(proposed);
    };
    this.#propose({ kind: "control", at: this.at, control, by }, told, eventIdOf(wish));
  }

  /** `done`: called for a waiting client. */
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

/** Age of the job's group, by the wall clocks of two managers. */
function elapsedMs(state: RunState, { wall }: ManagerContext): number {
  return Math.max(state.at, wall - state.createdAt - state.waitedMs);
}

/** Event id of a request: the same for every retry, so the log accepts one of them. Undefined without a request id. */
function eventIdOf(wish: string | undefined): string | undefined {
  return wish === undefined ? undefined : `wish/${wishName(wish)}`;
}
