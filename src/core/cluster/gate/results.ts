/** Results of finished jobs, merged from those of their datacenters at any gate a client asks. */

import { bytesOfHex, hexOf } from "../../base/hex.ts";
import type { DcResult, JobState } from "../../ledger/job/job-state.ts";
import { withTrust } from "../../load/results/doubt.ts";
import type { RunSummary } from "../../load/results/model.ts";
import { decodeResult } from "../manager/run-result.ts";
import { figuresOf } from "../pages.ts";
import type { Branch } from "./branch.ts";
import { clusterOf } from "./cluster-summary.ts";
import type { GateContext } from "./context.ts";
import { download } from "./download.ts";
import { mergedResult } from "./joint-result.ts";
import { decodeSpec } from "./spec.ts";
import { LOST } from "./status.ts";

/** Maximum number of results in memory. */
const KEPT_MAX = 20;
const NO_DIGEST = new Uint8Array(32);

/** Job in a datacenter, under the id it has there. */
interface JobPlace {
  readonly datacenter: string;
  readonly job: string;
}

export interface Result {
  readonly summary: RunSummary | null;
  /** Datacenters that left a result. */
  readonly places: readonly JobPlace[];
}

/** `unreachable`: the result exists but cannot be fetched at the moment. */
type Found = (Result & { readonly kind: "found" }) | { readonly kind: "unreachable" };

export const NOTHING_LEFT: Result = { summary: null, places: [] };

export class Results {
  readonly #context: GateContext;
  readonly #kept = new Map<string, Result>();

  constructor(context: GateContext) {
    this.#context = context;
  }

  find(state: JobState, done: (found: Found) => void): void {
    const kept = this.#kept.get(state.jobId);
    const left = state.run.results.filter(({ bytes }) => bytes > 0);
    if (kept !== undefined || left.length === 0) {
      done({ kind: "found", ...(kept ?? NOTHING_LEFT) });
      return;
    }
    const blobs = new Map<string, Uint8Array>();
    let open = left.length;
    for (const result of left) {
      this.#read(result, (bytes) => {
        if (bytes !== null) blobs.set(result.dcId, bytes);
        if (--open === 0) done(this.#merged(state, left, blobs));
      });
    }
  }

  #read({ dcId, digest }: DcResult, done: (bytes: Uint8Array | null) => void): void {
    const hash = hexOf(digest);
    if (!this.#context.blobs.has(hash)) {
      download(this.#context, dcId, hash, done);
      return;
    }
    this.#context.readBlob(hash, (bytes) => {
      if (bytes !== null) done(bytes);
      else download(this.#context, dcId, hash, done);
    });
  }

  #merged(
    state: JobState,
    left: readonly DcResult[],
    blobs: ReadonlyMap<string, Uint8Array>,
  ): Found {
    if (blobs.size < left.length) return { kind: "unreachable" };
    const parts = left.flatMap(({ dcId }) => {
      const found = decodeResult(blobs.get(dcId) ?? new Uint8Array());
      return found === null ? [] : [{ datacenter: dcId, ...found }];
    });
    const spec = decodeSpec(state.spec);
    const [first] = parts;
    if (first === undefined || spec === null) return { kind: "unreachable" };
    const { errorKinds, version } = this.#context.options;
    const isJoint = (state.run.started?.shares.length ?? 0) > 1;
    const { startSkewMs, summary: whole } = isJoint
      ? mergedResult({ state, spec, errorKinds, version }, parts)
      : { summary: first.summary, startSkewMs: 0 };
    const cluster = clusterOf(state, spec, parts, startSkewMs);
    const summary = withTrust({ ...whole, runId: state.jobId, cluster });
    const places = parts.flatMap(({ datacenter, summary: { runId: job } }) =>
      job === undefined ? [] : [{ datacenter, job }],
    );
    this.#keep(state.jobId, { summary, places });
    return { kind: "found", summary, places };
  }

  #keep(job: string, result: Result): void {
    this.#kept.set(job, result);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > KEPT_MAX && oldest !== undefined) this.#kept.delete(oldest);
  }
}

/** Entry of a finished part in the job's log; null if it has not finished. `isLost`: the part is abandoned. */
export function leftBy(
  { isOver, observed, problem, result, status }: Branch,
  isLost: boolean,
): Omit<DcResult, "dcId" | "fenceToken" | "hlc"> | null {
  const none = { digest: NO_DIGEST, bytes: 0, completed: 0, failed: 0 };
  if (problem !== null) return { finalStatus: "FAILED", ...none };
  if (!isOver) return isLost ? { finalStatus: LOST, ...none } : null;
  const hash = observed?.result ?? null;
  if (result == null || hash === null) return { finalStatus: status, ...none };
  const digest = bytesOfHex(hash);
  return { ...countedIn(result), finalStatus: status, digest, bytes: result.length };
}

/** Call counts of a result, for lists of jobs, which do not read it. */
function countedIn(bytes: Uint8Array): {
  readonly completed: number;
  readonly failed: number;
} {
  const { failed, requests } = figuresOf(decodeResult(bytes)?.summary ?? null);
  return { completed: Math.max(0, requests - failed), failed };
}
