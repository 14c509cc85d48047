/**
 * Submissions on their way into the datacenter: validated, kept until a quorum of the managers has their files, then
 * proposed. The client is sent the missing files, or asked to retry.
 *
 *     submit ─▶ sound? ─▶ files on a quorum? ─┬─ yes ─▶ proposed ─▶ accepted, or why not
 *                                             ├─ no manager has them ─▶ missing
 *                                             └─ not in time ─▶ retry
 */

import { Deadlines } from "../../base/deadlines.ts";
import { hexOf } from "../../base/hex.ts";
import { encodePlain } from "../../base/plain-value.ts";
import { sha256 } from "../../base/sha256.ts";
import {
  type BlobHash,
  type ClientAnswer,
  refusal,
  type Submission,
  type Submit,
} from "../messages.ts";
import type { ManagerContext } from "./context.ts";
import { encodeDatacenterEntry, SUBMISSION_BYTES_MAX } from "./datacenter-state.ts";
import type { Proposed } from "./proposals.ts";
import { tenantOf } from "./served-tenants.ts";
import {
  encodeSubmission,
  identityOf,
  needsOf,
  routingProblem,
  submissionProblem,
} from "./submission.ts";
import { FULL_RETRY_MS, queueProblem, quotaProblem, tenantsWaiting } from "./tenants.ts";

const KEY_CHARACTERS_MAX = 128;
/** Submissions waiting for files; each has at most `SUBMISSION_BYTES_MAX`. */
const WAITING_MAX = 100;
/** Shorter than a client's request timeout, so that the client learns why it has to retry. */
const WAIT_MS_MAX = 4_000;
/** Workers have to reduce their backlog first. (BP-5) */
const BACKPRESSURE_RETRY_MS = 1_000;

interface Waiting {
  /** Files that are not on a quorum yet. */
  readonly unready: Set<BlobHash>;
  readonly absent: BlobHash[];
  readonly propose: () => void;
}

export class Submits {
  readonly #context: ManagerContext;
  readonly #waiting = new Map<number, Waiting>();
  readonly #deadlines = new Deadlines<number>();
  #jobs = 0;

  constructor(context: ManagerContext) {
    this.#context = context;
  }

  take(id: number, { key, routing, submission }: Submit): void {
    const problem =
      keyProblem(key) ??
      submissionProblem(submission) ??
      routingProblem(routing, [this.#context.options.datacenter]) ??
      this.#quota(submission);
    if (problem !== null) {
      this.#answer(id, refusal("invalid", problem));
      return;
    }
    if (this.#context.workers.isFull && this.#context.datacenter()?.knows(key) !== true) {
      const text = "capacity exceeded: every worker has more to do than it can";
      this.#answer(id, {
        ...refusal("overloaded", text),
        retryAfterMs: BACKPRESSURE_RETRY_MS,
      });
      return;
    }
    const full = this.#queue(key, submission);
    if (full !== null) {
      this.#answer(id, { ...refusal("retry", full), retryAfterMs: FULL_RETRY_MS });
      return;
    }
    const data = encodeSubmission(submission);
    if (data.length > SUBMISSION_BYTES_MAX) {
      const most = `at most ${SUBMISSION_BYTES_MAX} are allowed`;
      const size = `the job takes ${data.length} bytes without its files`;
      this.#answer(id, refusal("invalid", `${size}; ${most}`));
      return;
    }
    if (this.#waiting.size >= WAITING_MAX) {
      this.#answer(id, refusal("retry", "too many submissions wait for their files"));
      return;
    }
    const unready = new Set(submission.files.map(({ hash }) => hash));
    const propose = (): void => this.#propose(id, key, submission, data);
    this.#waiting.set(id, { unready, absent: [], propose });
    this.#deadlines.set(id, this.#context.now + WAIT_MS_MAX);
    this.#context.emit({ kind: "replicateBlobs", hashes: [...unready] });
  }

  #quota(submission: Submission): string | null {
    return quotaProblem(this.#context.options.config.quotas, needsOf(submission));
  }

  /** An existing job is not counted again. */
  #queue(key: string, submission: Submission): string | null {
    const state = this.#context.datacenter();
    if (state === null || state.knows(key)) return null;
    const { quotas } = this.#context.options.config;
    return queueProblem(quotas, tenantsWaiting(state), tenantOf(submission));
  }

  onReady(hashes: readonly BlobHash[]): void {
    this.#onFiles(hashes, () => undefined);
  }

  /** Reports missing files together, once all others have arrived. */
  onAbsent(hashes: readonly BlobHash[]): void {
    this.#onFiles(hashes, ({ absent }, hash) => absent.push(hash));
  }

  nextDeadline(): number | null {
    return this.#deadlines.next();
  }

  onTick(): void {
    for (const id of this.#deadlines.takeDue(this.#context.now)) {
      this.#waiting.delete(id);
      this.#answer(id, refusal("retry", "its files are not on a quorum of the managers yet"));
    }
  }

  #onFiles(hashes: readonly BlobHash[], note: (waiting: Waiting, hash: BlobHash) => void): void {
    for (const [id, waiting] of this.#waiting) {
      for (const hash of hashes) if (waiting.unready.delete(hash)) note(waiting, hash);
      if (waiting.unready.size > 0) continue;
      this.#waiting.delete(id);
      this.#deadlines.delete(id);
      if (waiting.absent.length > 0) this.#answer(id, { kind: "missing", hashes: waiting.absent });
      else waiting.propose();
    }
  }

  #propose(id: number, key: string, submission: Submission, data: Uint8Array): void {
    const { datacenter, self } = this.#context.options;
    const createdAt = Math.floor(this.#context.wall);
    const job = `${datacenter}-${createdAt}-${jobName(self)}-${this.#jobs++}`;
    const entry = encodeDatacenterEntry({
      ...{ kind: "submit", job, key, createdAt, digest: digestOf(submission) },
      name: submission.name,
      takenBy: self,
      needs: needsOf(submission),
      submission: data,
    });
    const done = (proposed: Proposed): void => this.#answer(id, submitted(proposed));
    const eventId = this.#context.newEventId();
    this.#context.proposeForClient(this.#context.datacenterGroup, eventId, entry, done);
  }

  #answer(id: number, answer: ClientAnswer): void {
    this.#context.emit({ kind: "answer", id, answer });
  }
}

function digestOf(submission: Submission): string {
  return hexOf(sha256(encodePlain(identityOf(submission))));
}

function keyProblem({ length }: string): string | null {
  if (length > 0 && length <= KEY_CHARACTERS_MAX) return null;
  return `an idempotency key has 1 to ${KEY_CHARACTERS_MAX} characters`;
}

function submitted(proposed: Proposed): ClientAnswer {
  if (proposed.kind === "notNow") return refusal("retry", proposed.message);
  if (proposed.kind === "refused") return refusal("invalid", proposed.message);
  const { outcome, reason } = proposed;
  if (outcome === "queued" || outcome === "duplicate")
    return { kind: "accepted", job: reason ?? "", duplicate: outcome === "duplicate" };
  if (reason === "KEY_REUSED")
    return refusal("keyReused", "this idempotency key came with another submission");
  return refusal("retry", reason === "QUEUE_FULL" ? "too many jobs wait" : (reason ?? outcome));
}

/** Name of a job, with only characters allowed in a group's name. */
function jobName(self: string): string {
  return self
    .toLowerCase()
    .replace(/[^a-z0-9]/g, "")
    .slice(0, 32);
}
