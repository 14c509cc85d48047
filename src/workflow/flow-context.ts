/**
 * Context of a flow's body. No rules here: the engine creates the object, a new one for every iteration, so that code
 * that outlives its iteration can be distinguished from the next.
 */

import type { Duration } from "../core/base/duration.ts";
import type { CallResult, PreparedCall } from "../protocols/protocol.ts";
import type { UserInfo } from "./context.ts";
import type { CustomResult } from "./custom-result.ts";

export interface FlowStepOptions {
  /** A failure ends the iteration at once; the flow's own `required` by default. */
  readonly required?: boolean;
  /** Makes a series of its own where a threshold or `series` of the flow selects it. */
  readonly tags?: Readonly<Record<string, string>>;
}

/**
 * Performs a described call and returns its result; a failed call is a result, too. The most common form is last: the
 * compiler explains that one when none fits.
 */
export interface Step {
  /** Named by the call itself: "GET /items". */
  <Result extends CallResult>(
    call: PreparedCall<Result>,
    options?: FlowStepOptions,
  ): Promise<Result>;
  /** Times any code; its return value is `value` of the result. */
  <Value>(
    name: string,
    code: () => Value | Promise<Value>,
    options?: FlowStepOptions,
  ): Promise<CustomResult<Value>>;
  <Result extends CallResult>(
    name: string,
    call: PreparedCall<Result>,
    options?: FlowStepOptions,
  ): Promise<Result>;
}

export interface PollOptions<Result> {
  /** True ends the polling. A failed attempt whose content is read does not meet the condition. */
  readonly until: (result: Result) => boolean;
  /** Between the end of one attempt and the next; 1s by default. */
  readonly every?: Duration;
  /** Attempts answered later do not count; 30s by default. */
  readonly within?: Duration;
  /** Ends the iteration if the condition is not met in time. */
  readonly required?: boolean;
}

/** Counts every attempt as a call and the whole as a group; undefined when the condition was not met in time. */
export interface Poll {
  <Result extends CallResult>(
    name: string,
    call: () => PreparedCall<Result>,
    options: PollOptions<Result> & { readonly required: true },
  ): Promise<Result>;
  <Result extends CallResult>(
    name: string,
    call: () => PreparedCall<Result>,
    options: PollOptions<Result>,
  ): Promise<Result | undefined>;
}

/** Shared by setup, teardown and bodies: they perform calls. */
export interface CallingContext {
  readonly step: Step;
  /** Aborted shortly before the graceful stop, or the function's own limit, expires. */
  readonly signal: AbortSignal;
  /** Ends the run: what is measured so far is evaluated and written, and it does not pass. */
  readonly abort: (reason: string) => void;
}

export interface UserSetupContext<Data = unknown, Setup = unknown> extends CallingContext {
  /** Rows of the feeds: that of the user where a feed is `per: "user"`, else of its first iteration. */
  readonly data: Readonly<Data>;
  /** Return value of `setup`: plain, frozen data. */
  readonly setup: Setup;
  readonly user: UserInfo;
}

/** The defaults fit helpers for any flow: `async function login({ step }: FlowContext)`. */
export interface FlowContext<Data = unknown, State = unknown, Setup = unknown>
  extends UserSetupContext<Data, Setup> {
  /** Return value of `userSetup`: of this user alone, kept over iterations, mutable. */
  readonly state: State;
  /** Counted by its name; throwing counts as false. */
  readonly check: (name: string, test: () => boolean) => boolean;
  /** Times its body; groups nest. Side by side, each body must use the `step` it is given. */
  readonly group: <Value>(
    name: string,
    body: (context: FlowContext<Data, State, Setup>) => Value | Promise<Value>,
  ) => Promise<Value>;
  readonly poll: Poll;
  /** Rests, for a fixed time or a random one between two; not counted as lateness. */
  readonly pause: (least: Duration, most?: Duration) => Promise<void>;
  /** True with this probability (0 … 1), drawn from the user's seeded stream. */
  readonly chance: (probability: number) => boolean;
  /** One of them, drawn from the user's seeded stream. */
  readonly pick: <Item>(items: readonly Item[]) => Item;
  /** Ends the iteration by choice. */
  readonly end: (reason: string) => never;
}
