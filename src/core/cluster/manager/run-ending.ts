/** End of a job on its way into the log: a job ends when a quorum of the managers has its result. */

import { hexOf } from "../../base/hex.ts";
import { sha256 } from "../../base/sha256.ts";
import { clipText } from "../../base/text.ts";
import type { RunMachine } from "../../load/execution/run-machine.ts";
import { problemText } from "../../load/job/core-messages.ts";
import type { JobStatus as RunStatus } from "../../load/job/job.ts";
import type { RunSummary } from "../../load/results/model.ts";
import type { BlobHash, JobStatus } from "../messages.ts";
import { figuresOf } from "../pages.ts";
import type { ManagerContext } from "./context.ts";
import type { RunEnd } from "./run-entries.ts";
import type { RunLog } from "./run-log.ts";

/** Maximum length of the reason shown to users. */
const REASON_CHARACTERS_MAX = 1_000;

interface Conclusion {
  readonly status: JobStatus;
  readonly reason: string | null;
  readonly summary: RunSummary | null;
}

/** Derives the end of a job from the end of its executions; `cancelled`, `timedOut`: the reason if it was ended. */
export function conclusionOf(
  { machine, timedOut }: { readonly machine: RunMachine; readonly timedOut: string | null },
  status: RunStatus,
  cancelled: string | null,
): Conclusion {
  if (machine.mistake !== undefined)
    return { status: "FAILED", reason: problemText(machine.mistake), summary: null };
  const ended = { completed: "COMPLETED", partial: "PARTIAL", failed: "FAILED" } as const;
  const stopped = cancelled === null ? "COMPLETED" : "CANCELLED";
  const word = status === "interrupted" ? stopped : ended[status];
  const summary = machine.summary();
  if (timedOut !== null && cancelled === null)
    return { status: "TIMED_OUT", reason: timedOut, summary };
  const isFailed = word === "FAILED" || word === "PARTIAL";
  const reason = cancelled ?? (isFailed ? failureOf(summary) : null);
  return { status: word, reason, summary };
}

/** The first failed workflow with its reason; dependent workflows only name the one they depend on. */
function failureOf({ workflows }: RunSummary): string | null {
  const first = workflows.find(({ error, status }) => status === "failed" && error !== null);
  return first === undefined ? null : `${first.name}: ${first.error}`;
}

export class RunEnding {
  readonly #context: ManagerContext;
  readonly #log: RunLog;
  /** The end to commit once the result is on a quorum. */
  #kept: RunEnd | null = null;

  constructor(context: ManagerContext, log: RunLog) {
    this.#context = context;
    this.#log = log;
  }

  /** `result`: bytes of this summary; null when there is none to keep. */
  end(
    status: JobStatus,
    why: string | null,
    result: Uint8Array | null,
    summary: RunSummary | null,
  ): void {
    const reason = why === null ? null : clipText(why, REASON_CHARACTERS_MAX);
    if (result === null) {
      this.#log.propose({ kind: "end", status, reason, summary: null });
      return;
    }
    const hash = hexOf(sha256(result));
    const { failed, requests } = figuresOf(summary);
    this.#kept = { status, reason, summary: hash, calls: { requests, failed } };
    this.#context.emit({ kind: "keepBlob", hash, bytes: result });
  }

  /** Called when a quorum of the managers has the result, or it cannot be stored. */
  onBlobKept(hash: BlobHash, problem: string | null): void {
    const end = this.#kept;
    if (end?.summary !== hash) return;
    this.#kept = null;
    const lost = { reason: `its result is lost: ${problem}`, summary: null };
    this.#log.propose({ kind: "end", ...end, ...(problem === null ? {} : lost) });
  }
}
