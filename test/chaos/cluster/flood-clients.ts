/**
 * A process of many clients that submit to one gate without a pause, ask after what was accepted, and cancel it.
 * The last line of output is a `FloodTally`; another process judges it.
 *
 *     tsx flood-clients.ts '{"clients":500,"gate":"…","addresses":[…],"secret":"…","ms":60000}'
 */

import { randomUUID } from "node:crypto";
import { ClusterClient, hasEnded } from "../../../src/client/client.ts";
import {
  ANYWHERE,
  type ClientAnswer,
  type ClientRequest,
  type Refusal,
  type Submission,
} from "../../../src/core/cluster/messages.ts";
import { isPassing } from "../../../src/core/cluster/node/asking.ts";
import { prepareJob } from "../../../src/runner/submission.ts";
import { pause } from "./faults.ts";
import { RawClient } from "./raw-client.ts";

export interface FloodOrder {
  readonly clients: number;
  readonly gate: string;
  readonly addresses: readonly string[];
  readonly secret: string;
  readonly ms: number;
}

export interface FloodTally {
  submitted: number;
  accepted: number;
  /** By reason. */
  refused: Record<string, number>;
  /** Rejections for capacity or rate that came without a retry time. */
  withoutRetryAfter: number;
  /** Sent again since no answer came in time. */
  late: number;
  /** Neither accepted nor refused for good long after the flood. */
  unanswered: number;
  /** Cancels and questions for a state: asked, shed, and given up after all attempts. */
  critical: { asked: number; shed: number; unserved: number };
  /** Accepted jobs that had no end when the flood was over for some time. */
  unended: number;
}

const FLOW = "test/chaos/cluster/idle-flow.ts";
/** Between two jobs of one client. */
const EVERY_MS = 1_000;
/** Before the same is asked again. */
const AGAIN_MS = 500;
/** A ceiling for a hang: how long a client retries a request that must be served, or waits for the end of a job. */
const PATIENCE_MS = 120_000;
const LOAD_ATTEMPTS_MAX = 5;

const order = JSON.parse(process.argv[2] ?? "{}") as FloodOrder;
const tally: FloodTally = {
  ...{
    submitted: 0,
    accepted: 0,
    refused: {},
    withoutRetryAfter: 0,
    late: 0,
    unanswered: 0,
    unended: 0,
  },
  critical: { asked: 0, shed: 0, unserved: 0 },
};

/** Uploads the files to the gates before the flood begins. */
async function prepared(): Promise<Submission> {
  const { files, submission } = await loaded();
  const client = ClusterClient.open({ managers: order.addresses, secret: order.secret });
  const job = await client.submit(submission, files);
  await client.control(job, { kind: "cancel", reason: "the first of a flood" }, "flood");
  await client.close();
  return submission;
}

/** A machine that is too busy for it is asked again. */
async function loaded(): ReturnType<typeof prepareJob> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await prepareJob(FLOW, {}, () => undefined);
    } catch (error) {
      if (attempt === LOAD_ATTEMPTS_MAX) throw error;
    }
  }
}

class FloodClient {
  readonly #raw = new RawClient(order.addresses, order.secret);
  readonly #jobs: string[] = [];

  /** Waits for the gate's first message: a busy machine takes long to greet this many clients. */
  async connect(): Promise<void> {
    while ((await this.#raw.ask({ kind: "datacenters" }, order.gate)) === null)
      await pause(AGAIN_MS);
  }

  /** Runs one job after the other, each to its end: an unobserved job would be orphaned. */
  async flood(submission: Submission, until: number): Promise<void> {
    while (Date.now() < until) {
      tally.submitted++;
      const job = await this.#submit(submission, until + PATIENCE_MS);
      if (job === null) tally.unanswered++;
      else await this.#dismiss(job);
      await pause(EVERY_MS);
    }
  }

  /**
   * Submits like the product's client: retries with the same key when asked to come back, so that the job runs once.
   */
  async #submit(submission: Submission, until: number): Promise<string | null> {
    const request = { kind: "submit", key: randomUUID(), submission, routing: ANYWHERE } as const;
    while (Date.now() < until) {
      const answer = await this.#raw.ask(request, order.gate);
      if (answer?.kind === "accepted") return answer.job;
      if (answer === null) tally.late++;
      await pause(Math.max(AGAIN_MS, refusedFor(answer)));
    }
    return null;
  }

  /** Whatever was accepted has an end. */
  async end(): Promise<void> {
    for (const job of this.#jobs) if (!(await this.#hasEnded(job))) tally.unended++;
    await this.#raw.close();
  }

  async #dismiss(job: string): Promise<void> {
    tally.accepted++;
    this.#jobs.push(job);
    await this.#served({ kind: "status", job });
    const control = { kind: "cancel", reason: "of a flood" } as const;
    await this.#served({ kind: "control", job, by: "flood", control });
  }

  /** Retries like the product's client: after no answer, or at the node that the answer names. */
  async #served(request: ClientRequest): Promise<void> {
    tally.critical.asked++;
    const until = Date.now() + PATIENCE_MS;
    let to: string | null = order.gate;
    while (Date.now() < until) {
      const answer = await this.#raw.ask(request, to);
      if (answer !== null && isDecided(answer)) return;
      const refused = answer?.kind === "refused" ? answer : null;
      if (refused?.reason === "overloaded") tally.critical.shed++;
      to = refused?.address ?? null;
      await pause(Math.max(AGAIN_MS, refused?.retryAfterMs ?? 0));
    }
    tally.critical.unserved++;
  }

  async #hasEnded(job: string): Promise<boolean> {
    const until = Date.now() + PATIENCE_MS;
    while (Date.now() < until) {
      const answer = await this.#raw.ask({ kind: "status", job }, null);
      if (answer?.kind === "job" && hasEnded(answer.job.status)) return true;
      await pause(AGAIN_MS);
    }
    return false;
  }
}

/** A job that has ended by itself is not cancelled any more, and its gate says so. */
function isDecided(answer: ClientAnswer): boolean {
  if (answer.kind !== "refused") return true;
  return !isPassing(answer.reason) && answer.reason !== "unknownJob";
}

/** Retry delay of a rejection. */
function refusedFor(answer: ClientAnswer | null): number {
  if (answer?.kind !== "refused") return 0;
  const { reason, retryAfterMs } = answer satisfies Refusal;
  tally.refused[reason] = (tally.refused[reason] ?? 0) + 1;
  const isTimed = reason === "overloaded" || reason === "rateLimited";
  if (isTimed && !((retryAfterMs ?? 0) > 0)) tally.withoutRetryAfter++;
  if (!isPassing(reason)) throw new Error(`${reason}: ${answer.message}`);
  return retryAfterMs ?? 0;
}

const submission = await prepared();
const clients = Array.from({ length: order.clients }, () => new FloodClient());
await Promise.all(clients.map((client) => client.connect()));
const until = Date.now() + order.ms;
process.stdout.write("flooding\n");
await Promise.all(clients.map((client) => client.flood(submission, until)));
await Promise.all(clients.map((client) => client.end()));
process.stdout.write(`${JSON.stringify(tally)}\n`);
