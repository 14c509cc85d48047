/** Contexts passed to functions of a workflow. One object per virtual user; results are new in every iteration. */

import type { Clients } from "../protocols/protocol.ts";

export interface UserInfo {
  /** Number of this virtual user over all cores, from 0. */
  readonly id: number;
  /** Iterations this user has begun before, from 0. */
  readonly iteration: number;
  /** Number of the executor core, from 0. */
  readonly core: number;
}

export interface StepContext<Results, Data, Used, Setup> extends Clients {
  /** Results of the steps named in `after`, and no others. (VUC-3) */
  readonly results: Readonly<Results>;
  /** This iteration's row of each feed. */
  readonly data: Readonly<Data>;
  /** Values that `use` took from other workflows. */
  readonly used: Readonly<Used>;
  /** Return value of `setup`. */
  readonly setup: Setup;
  /** Free for the author: values of this virtual user, kept over iterations. */
  readonly vars: Record<string, unknown>;
  readonly user: UserInfo;
  /** Aborted, with the reason, shortly before the graceful stop or the limit of this code expires. */
  readonly signal: AbortSignal;
  /** Waits, and ends early when the run does. */
  sleep(ms: number): Promise<void>;
  /** Ends the whole run, gracefully and with results; it does not pass. */
  abort(reason: string): void;
}

export interface SetupContext extends Clients {
  /** Aborted, with the reason, when the run is stopped or shortly before the limit expires. */
  readonly signal: AbortSignal;
  /** Ends the whole run, gracefully and with results; it does not pass. */
  abort(reason: string): void;
}

export interface ProvideContext<Results, Setup> {
  /** Last successful result of each step on this core; undefined if there was none. */
  readonly last: Readonly<Partial<Results>>;
  readonly setup: Setup;
}
