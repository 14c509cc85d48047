/**
 * A call may end while it is being started: the connection is gone, or a message is there already.
 * Told at once, a body that calls again and again would hold up everything else; so it is told in a
 * turn of its own.
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
