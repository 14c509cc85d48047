/** Calls that setup or teardown of a workflow makes through clients: recorded apart from the iterations. */

import { clock } from "../protocols/call.ts";
import type { CallResult, ClientCall } from "../protocols/protocol.ts";
import type { RunnerHost } from "./runner.ts";
import type { SessionListener } from "./session.ts";

export class AsideCalls implements SessionListener {
  readonly #host: Pick<RunnerHost, "flowSteps" | "recorder">;
  readonly #phase: "setup" | "teardown";

  constructor(host: Pick<RunnerHost, "flowSteps" | "recorder">, phase: "setup" | "teardown") {
    this.#host = host;
    this.#phase = phase;
  }

  clientCallEnded(call: ClientCall, result: CallResult): void {
    this.#host.recorder.aside(this.#host.flowSteps.asideCall(call, this.#phase), result);
  }

  /** Abandons calls that are still under way. */
  cut(calls: readonly ClientCall[]): void {
    const { flowSteps, recorder } = this.#host;
    const now = clock();
    for (const call of calls) {
      const number = flowSteps.asideCall(call, this.#phase);
      recorder.asideCutOff(number, call.startedAt, now, call.sent);
    }
  }
}
