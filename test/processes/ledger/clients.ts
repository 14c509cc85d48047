/**
 * Clients of a ledger under faults: each works on jobs through whichever node answers, records its requests and answers
 * with times, and retries with the same event id when the outcome is unknown.
 */

import { randomBytes } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import type { LedgerCluster, NodePlace } from "../../../bench/ledger/processes.ts";
import type { NodeId } from "../../../src/core/base/ids.ts";
import type { Random } from "../../../src/core/base/random.ts";
import type { EventId } from "../../../src/core/ledger/job/events.ts";
import type { JobId } from "../../../src/core/ledger/job/job-id.ts";
import { trailEntries } from "../../../src/core/ledger/job/trail.ts";
import type { LedgerAnswer, LedgerRequest } from "../../../src/core/ledger/node/messages.ts";
import { LedgerStream } from "../../../src/ledger/stream-client.ts";
import type { FinalLog, Operation } from "./history.ts";

/** A job's state remembers its last 1,024 events; a fresh job takes over well before. */
const EVENTS_PER_JOB = 500;
const ATTEMPT_MS = 8_000;
const READ_SHARE = 0.4;
/** Against a machine that is faster than the checker's memory. */
const PACE_MS = 4;

interface Sample {
  readonly at: number;
  readonly ms: number;
}

export class Clients {
  readonly operations: Operation[] = [];
  readonly samples: Sample[] = [];
  /** Key to the jobs it was said to be. */
  readonly keys = new Map<string, Set<string>>();
  readonly #places: readonly NodePlace[];
  readonly #tokenAt: LedgerCluster["tokenAt"];
  readonly #random: Random;
  readonly #streams = new Map<string, LedgerStream>();
  readonly #jobs: { id: string; asked: number }[] = [];
  readonly #allJobs: string[] = [];
  #stopped = false;
  #events = 0;
  unknown = 0;

  constructor(cluster: LedgerCluster, random: Random) {
    this.#places = cluster.places;
    this.#tokenAt = (api) => cluster.tokenAt(api);
    this.#random = random;
  }

  async start(workers: number, jobs: number): Promise<Promise<void>[]> {
    for (const place of this.#places) void this.#connect(place);
    for (let i = 0; i < jobs; i++) this.#jobs.push({ id: await this.submit(), asked: 0 });
    return Array.from({ length: workers }, () => this.#work());
  }

  stop(): void {
    this.#stopped = true;
  }

  close(): void {
    this.#stopped = true;
    for (const stream of this.#streams.values()) stream.close();
  }

  /** One job for one key, however often it has to be sent and wherever. */
  async submit(): Promise<string> {
    const key = `chaos:${this.#allJobs.length}:${randomBytes(8).toString("hex")}`;
    const named = new Set<string>();
    this.keys.set(key, named);
    const request = {
      kind: "submit",
      key,
      spec: new Uint8Array(32),
      assignedDcs: ["dc1"],
    } as const;
    for (;;) {
      // Two nodes at once, as an impatient client does: still one job.
      const answers = await Promise.all([this.#ask(request), this.#ask(request)]);
      for (const answer of answers) {
        if (answer?.kind !== "submitted" || answer.answer.kind !== "accepted") continue;
        named.add(answer.answer.jobId);
      }
      const [jobId] = named;
      if (jobId === undefined) continue;
      this.#allJobs.push(jobId);
      return jobId;
    }
  }

  /** Reads every job strongly; call it when the ledger has healed. */
  async finalLogs(): Promise<readonly FinalLog[]> {
    const logs: FinalLog[] = [];
    for (const job of this.#allJobs) {
      for (let attempt = 0; ; attempt++) {
        const answer = await this.#ask(strongRead(job));
        if (answer?.kind === "job") {
          const events = [...trailEntries(answer.state.trail)].map(({ seq, eventId }) => ({
            seq,
            eventId,
          }));
          logs.push({ job, appliedSeq: answer.state.appliedSeq, events });
          break;
        }
        if (attempt > 50) break;
        await pause(100);
      }
    }
    return logs;
  }

  /** Each job's (place, hash) as one node has it. */
  async seenBy(place: NodePlace): Promise<ReadonlyMap<string, string>> {
    const seen = new Map<string, string>();
    const stream = await LedgerStream.connect(place.api, this.#tokenAt(place.api));
    for (const job of this.#allJobs) {
      const read = { ...strongRead(job), level: "EVENTUAL" } as const;
      const answer = await stream.ask(read);
      if (answer?.kind !== "job") continue;
      const { appliedSeq, chain } = answer.state;
      seen.set(job, `${appliedSeq} ${Buffer.from(chain).toString("hex")}`);
    }
    stream.close();
    return seen;
  }

  async #work(): Promise<void> {
    while (!this.#stopped) {
      const slot = this.#random.below(this.#jobs.length);
      const job = this.#jobs[slot] as { id: string; asked: number };
      if (job.asked > EVENTS_PER_JOB) {
        job.asked = 0;
        job.id = await this.submit();
      }
      if (this.#random.chance(READ_SHARE)) await this.#read(job.id);
      else {
        job.asked++;
        await this.#append(job.id);
      }
      await pause(PACE_MS);
    }
  }

  async #read(job: string): Promise<void> {
    const operation = this.#invoke(job, "read", null);
    const answer = await this.#ask(strongRead(job));
    if (answer?.kind !== "job") return;
    operation.returnedAt = performance.now();
    operation.seq = answer.state.appliedSeq;
    operation.chain = Buffer.from(answer.state.chain).toString("hex");
    this.operations.push(operation);
    this.#sample(operation);
  }

  async #append(job: string): Promise<void> {
    const eventId = `e${++this.#events}`;
    const operation = this.#invoke(job, "append", eventId);
    this.operations.push(operation);
    for (let attempt = 0; attempt < 6 && !this.#stopped; attempt++) {
      const answer = await this.#ask({
        kind: "append",
        durability: "REGIONAL",
        event: {
          ...{
            kind: "JobAccepted",
            jobId: job as JobId,
            eventId: eventId as EventId,
            fenceToken: 0,
          },
          ...{
            hlc: { wallMs: 0, logical: 0, node: "client" as NodeId },
            dcId: "dc1",
            workerCount: 1,
          },
        },
      });
      if (answer?.kind !== "committed") continue;
      operation.returnedAt = performance.now();
      operation.seq = answer.seq;
      this.#sample(operation);
      return;
    }
    this.unknown++;
  }

  #invoke(job: string, kind: Operation["kind"], eventId: string | null): Operation {
    const invokedAt = performance.now();
    return { job, kind, eventId, invokedAt, returnedAt: Infinity, seq: null, chain: null };
  }

  #sample({ invokedAt, returnedAt }: Operation): void {
    this.samples.push({ at: returnedAt, ms: returnedAt - invokedAt });
  }

  /** Null: no answer, or none in time. */
  async #ask(request: LedgerRequest): Promise<LedgerAnswer | null> {
    const open = [...this.#streams.values()].filter((stream) => !stream.closed);
    if (open.length === 0) {
      await pause(20);
      return null;
    }
    const stream = this.#random.pick(open);
    const late = new AbortController();
    const answer = await Promise.race([
      stream.ask(request),
      pause(ATTEMPT_MS, null, { signal: late.signal }).catch(() => null),
    ]);
    late.abort();
    return answer;
  }

  async #connect(place: NodePlace): Promise<void> {
    while (!this.#stopped) {
      const closed = new Promise<void>((resolve) => {
        const options = { ...this.#tokenAt(place.api), timeoutMs: 1_000, onClose: resolve };
        LedgerStream.connect(place.api, options).then(
          (stream) => this.#streams.set(place.name, stream),
          () => resolve(),
        );
      });
      await closed;
      await pause(100);
    }
  }
}

function strongRead(job: string): Extract<LedgerRequest, { kind: "read" }> {
  return { kind: "read", jobId: job as JobId, level: "STRONG", minSeq: -1, staleMs: 0 };
}
