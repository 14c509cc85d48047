/** One virtual user's client of a protocol, for functions: it performs what targets describe. */

import { clock } from "../call.ts";
import type { CallResult, Session } from "../protocol.ts";
import type { DescribedCall } from "./described-call.ts";
import type { TargetResult } from "./result.ts";

export class TargetClient<Command> {
  readonly #session: Session;

  constructor(session: Session) {
    this.#session = session;
  }

  /** Ends with the result, also when the call failed. */
  send = async <Value>(call: DescribedCall<Command, Value>): Promise<TargetResult<Value>> => {
    const result = await new Promise<CallResult | undefined>((resolve) => {
      const sink = { callFinished: (_: unknown, end: CallResult | undefined) => resolve(end) };
      call.bind(this.#session, true, sink).start(clock());
    });
    this.#session.called?.(result as TargetResult<Value>, call.protocol, call.title);
    return result as TargetResult<Value>;
  };
}
