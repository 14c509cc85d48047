/**
 * One call of a flow under way: its step, its due time, and the promise that its body awaits. A user reuses finished
 * ones with their bound calls, so that a call costs only the promise and the result that the body sees.
 */

import { errorText } from "../core/base/error-text.ts";
import { clock } from "../protocols/call.ts";
import { DescriptionAwaited } from "../protocols/description.ts";
import { setImmediate } from "../protocols/net/timers.ts";
import type {
  BoundCall,
  CallRecord,
  CallResult,
  CallSink,
  PreparedCall,
} from "../protocols/protocol.ts";
import { CustomResult } from "../workflow/custom-result.ts";
import type { FlowGroup } from "./flow-group.ts";
import { IterationEnd } from "./iteration-end.ts";
import type { UserSession } from "./session.ts";

/** User that made the call. */
export interface CallOwner {
  readonly session: UserSession;
  callEnded(call: FlowCall, record: CallRecord, result: CallResult): void;
  /** The code of a step threw something that is not a failure of the code itself. */
  codeThrew(call: FlowCall, error: Error): void;
}

export class FlowCall implements CallSink {
  /** Number of its step. */
  step = 0;
  name = "";
  required = false;
  /** Made outside the iterations: in userSetup, say. */
  aside = false;
  phase: string | null = null;
  /** Call that it performs, where an observer is present; null for code. */
  described: PreparedCall | null = null;
  group: FlowGroup | null = null;
  startedAt = 0;
  dueAt = 0;
  underWay = false;
  /** Neighbours among the calls of its user that are under way, or that can be reused. */
  previous: FlowCall | null = null;
  next: FlowCall | null = null;
  readonly #owner: CallOwner;
  /** Kept for the next call, whatever runs now. */
  #bound: BoundCall | null = null;
  /** Whether the bound call is running; code sends nothing by itself. */
  #sends = false;
  #promise: Promise<CallResult> | null = null;
  #resolve: (result: CallResult) => void = unasked;
  #reject: (error: Error) => void = unasked;
  readonly #executor = (
    resolve: (result: CallResult) => void,
    reject: (error: Error) => void,
  ): void => {
    this.#resolve = resolve;
    this.#reject = reject;
  };

  constructor(owner: CallOwner) {
    this.#owner = owner;
  }

  start(call: PreparedCall, now: number): Promise<CallResult> {
    const { session } = this.#owner;
    this.#bound =
      call.rebind === undefined
        ? call.bind(session, true, this)
        : call.rebind(session, this.#bound, this);
    const promise = this.#begin();
    this.#sends = true;
    this.#bound.start(now);
    return promise;
  }

  #begin(): Promise<CallResult> {
    const promise = new Promise<CallResult>(this.#executor);
    this.#sends = false;
    this.#promise = promise;
    this.underWay = true;
    return promise;
  }

  /** Completes with a canned answer instead of sending. */
  startAnswered(answer: CallResult): Promise<CallResult> {
    const promise = this.#begin();
    setImmediate(() => this.callFinished(answer, answer));
    return promise;
  }

  startCode(code: () => unknown, now: number): Promise<CallResult> {
    const promise = this.#begin();
    void this.#runCode(code, now);
    return promise;
  }

  async #runCode(code: () => unknown, startedAt: number): Promise<void> {
    let result: CallResult;
    try {
      const value = await code();
      result = new CustomResult(value, { startedAt, endedAt: clock() });
    } catch (error) {
      if (error instanceof IterationEnd || error instanceof DescriptionAwaited) {
        if (this.underWay) this.#owner.codeThrew(this, error);
        return;
      }
      // Code that threw measured nothing: a failure without a latency.
      const failure = { errorKind: "exception", error: errorText(error) } as const;
      result = new CustomResult<unknown>(undefined, { startedAt, endedAt: clock(), ...failure });
    }
    this.callFinished(result, result);
  }

  /** Requests of the call under way. */
  get sent(): number {
    return this.#sends ? (this.#bound?.sent ?? 0) : 0;
  }

  callFinished(record: CallRecord, result: CallResult | undefined): void {
    if (this.underWay && result !== undefined) this.#owner.callEnded(this, record, result);
  }

  /** Resolves the body's promise with the result. */
  resolve(result: CallResult): void {
    this.#over();
    this.#resolve(result);
  }

  /** Notifies the body that its iteration is over. */
  reject(error: Error): void {
    // The promise may not be awaited: that is not an error of its own.
    this.#promise?.catch(unasked);
    this.#over();
    this.#reject(error);
  }

  #over(): void {
    this.underWay = false;
    this.group = null;
    this.#promise = null;
  }
}

function unasked(): void {}
