/** Protocol client of one virtual user, for functions: performs calls described by targets. */

import { clock } from "../call.ts";
import type { CallResult, ClientCall, Session } from "../protocol.ts";
import type { DescribedCall } from "./described-call.ts";
import type { TargetResult } from "./result.ts";

export class TargetClient<Command> {
  readonly #session: Session;

  constructor(session: Session) {
    this.#session = session;
  }

  /** Resolves to the result, even when the call failed. */
  send = async <Value>(call: DescribedCall<Command, Value>): Promise<TargetResult<Value>> => {
    const { protocol, title } = call;
    let end: (result: CallResult | undefined) => void;
    const ended = new Promise<CallResult | undefined>((resolve) => {
      end = resolve;
    });
    const bound = call.bind(this.#session, true, { callFinished: (_, result) => end(result) });
    const startedAt = clock();
    const clientCall: ClientCall = {
      ...{ protocol, title, verb: protocol, path: title, startedAt },
      get sent() {
        return bound.sent ?? 0;
      },
    };
    this.#session.calling?.(clientCall);
    bound.start(startedAt);
    const result = (await ended) as TargetResult<Value>;
    this.#session.called?.(clientCall, result);
    return result;
  };
}
