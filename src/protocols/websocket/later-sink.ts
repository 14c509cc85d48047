/**
 * Defers results of calls that finish while they are being started, because the connection is lost or a message is
 * already available. Reported at once, a function that calls in a loop would block the event loop; so they are reported
 * in a separate turn.
 */

import { setImmediate } from "../net/timers.ts";
import type { CallRecord, CallResult, CallSink } from "../protocol.ts";

export class LaterSink implements CallSink {
  readonly #sink: CallSink;
  #starting = false;

  constructor(sink: CallSink) {
    this.#sink = sink;
  }

  during(start: () => void): void {
    this.#starting = true;
    try {
      start();
    } finally {
      this.#starting = false;
    }
  }

  callFinished(record: CallRecord, result: CallResult | undefined): void {
    if (this.#starting) setImmediate(() => this.#sink.callFinished(record, result));
    else this.#sink.callFinished(record, result);
  }
}
