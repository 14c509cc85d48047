/** Timeout of a job over all its datacenters, evaluated by the leading gate from their answers. (AD-34.33) */

import type { JobState } from "../../ledger/job/job-state.ts";
import { type GlobalTimeout, globalTimeout } from "../overload/joint-timeout.ts";
import type { Branch } from "./branch.ts";
import type { GateContext } from "./context.ts";
import { createdAtOf } from "./status.ts";

export class JobClock {
  readonly #context: GateContext;
  /** Last detected timeout; sent to datacenters until they have ended the job. */
  #found: GlobalTimeout | null = null;

  constructor(context: GateContext) {
    this.#context = context;
  }

  /** Reason of the timeout; null if there is none. */
  get reason(): string | null {
    return this.#found?.reason ?? null;
  }

  /** `timeoutMs`: from the submission. */
  look(state: JobState, timeoutMs: number | null, branches: readonly Branch[]): void {
    const { now, options, timeouts, wall } = this.#context;
    const isUnderWay = state.run.started !== null && state.status !== "CANCELLING";
    const elapsedMs = wall - createdAtOf(state);
    const clocks = branches.map((one) => one.clock(now));
    const found = isUnderWay
      ? globalTimeout({ elapsedMs, timeoutMs }, clocks, options.config)
      : null;
    if (found !== null && this.#found?.cause !== found.cause) {
      timeouts.count("globalDeclared", found.cause);
      const fields = { job: state.jobId, cause: found.cause, reason: found.reason };
      this.#context.log("warn", "timeout.declared", fields);
    }
    this.#found = found;
  }
}
