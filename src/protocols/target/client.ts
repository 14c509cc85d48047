/** One virtual user's client of a protocol, for functions: it performs what targets describe. */

import { clock } from "../call.ts";
import type { CallResult, Session } from "../protocol.ts";
import type { DescribedCall } from "./described-call.ts";

export class TargetClient<Command> {
  readonly #session: Session;

  constructor(session: Session) {
    this.#session = session;
  }

  /** Ends with the result, also when the call failed. */
  send = async <Result extends CallResult>(
    call: DescribedCall<Command, Result>,
  ): Promise<Result> => {
    const result = await new Promise<CallResult | undefined>((resolve) => {
      const sink = { callFinished: (_: unknown, end: CallResult | undefined) => resolve(end) };
      call.bind(this.#session, true, sink).start(clock());
    });
    this.#session.called?.(result as Result, call.protocol, call.title);
    return result as Result;
  };
}
