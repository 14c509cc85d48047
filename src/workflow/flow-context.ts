/**
 * What the body of a flow receives. Nothing here holds a rule: the engine makes the object, a new
 * one for every iteration, so that what outlives its iteration can be told from what belongs to the
 * next.
 */

import type { Duration } from "../core/base/duration.ts";
import type { CallResult, PreparedCall } from "../protocols/protocol.ts";
import type { UserInfo } from "./context.ts";
import type { CustomResult } from "./custom-result.ts";

export interface FlowStepOptions {
  /** A failure ends the iteration at once; the flow's own `required` by default. */
  readonly required?: boolean;
  /** Make a series of their own where a threshold or `series` of the flow selects them. */
  readonly tags?: Readonly<Record<string, string>>;
}

/**
 * Performs a described call and gives its result; a failed call is a result, too. The form that is
 * written most stands last: it is the one that the compiler explains when none fits.
 */
export interface Step {
  /** Named by the call itself: "GET /items". */
  <Result extends CallResult>(
    call: PreparedCall<Result>,
    options?: FlowStepOptions,
  ): Promise<Result>;
  /** Times any code; what it returns is `value` of the result. */
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
  /** True ends it. A try that failed and is asked for content does not meet it. */
  readonly until: (result: Result) => boolean;
  /** Between the end of one try and the next; 1s by default. */
  readonly every?: Duration;
  /** Tries whose answers come later do not count; 30s by default. */
  readonly within?: Duration;
  /** Not met within the time ends the iteration. */
  readonly required?: boolean;
}

/** Counts every try as a call and the whole as a group; undefined when it was not met in time. */
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

/** What setup, teardown and bodies have in common: they perform calls. */
export interface CallingContext {
  readonly step: Step;
  /** Aborted shortly before the graceful stop, or the function's own limit, is over. */
  readonly signal: AbortSignal;
  /** Ends the run: what is measured so far is judged and written, and it does not pass. */
  readonly abort: (reason: string) => void;
}

export interface UserSetupContext<Data = unknown, Setup = unknown> extends CallingContext {
  /** Rows of the feeds: that of the user where a feed is `per: "user"`, else of its first iteration. */
  readonly data: Readonly<Data>;
  /** What `setup` returned: plain, frozen data. */
  readonly setup: Setup;
  readonly user: UserInfo;
}

/** The defaults fit helpers that any flow may use: `async function login({ step }: FlowContext)`. */
export interface FlowContext<Data = unknown, State = unknown, Setup = unknown>
  extends UserSetupContext<Data, Setup> {
  /** What `userSetup` returned: of this user alone, kept over iterations, free to change. */
  readonly state: State;
  /** Counted by its name; throwing counts as false. */
  readonly check: (name: string, test: () => boolean) => boolean;
  /** Times what its body does; groups nest. Side by side, each body must use the `step` it is given. */
  readonly group: <Value>(
    name: string,
    body: (context: FlowContext<Data, State, Setup>) => Value | Promise<Value>,
  ) => Promise<Value>;
  readonly poll: Poll;
  /** Rests, for a fixed time or one drawn between two; nobody is late by it. */
  readonly pause: (least: Duration, most?: Duration) => Promise<void>;
  /** True with this probability (0 … 1), drawn from the user's seeded stream. */
  readonly chance: (probability: number) => boolean;
  /** One of them, drawn from the user's seeded stream. */
  readonly pick: <Item>(items: readonly Item[]) => Item;
  /** Ends the iteration, by choice. */
  readonly end: (reason: string) => never;
}
