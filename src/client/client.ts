/**
 * Client of a cluster: submit jobs, follow them, control them, and see the nodes. Managers may come and go: requests
 * are retried at another one, and what must happen once happens once.
 */

import { randomBytes, randomUUID } from "node:crypto";
import { assertNever } from "../core/base/assert.ts";
import { errorText } from "../core/base/error-text.ts";
import type { Address } from "../core/base/ids.ts";
import { Random } from "../core/base/random.ts";
import {
  ANYWHERE,
  BLOB_CHUNK_BYTES_MAX,
  type BlobHash,
  type ClientAnswer,
  type ClientRequest,
  type Control,
  type DatacenterView,
  ENDED_STATUSES,
  type JobEventView,
  type JobStatus,
  type JobView,
  type NodeView,
  type Progress,
  type Refusal,
  type Routing,
  refusal,
  type Submission,
} from "../core/cluster/messages.ts";
import { Asking, isPassing } from "../core/cluster/node/asking.ts";
import {
  type ClientEffect,
  type ClientInput,
  ClientProcess,
} from "../core/cluster/node/client-process.ts";
import { type RetryConfig, RetryDelays } from "../core/cluster/overload/retry.ts";
import { Background } from "../host/background.ts";
import { deflate } from "../host/deflate.ts";
import { type Driven, Loop } from "../host/loop.ts";
import { nodeAead } from "../host/node-aead.ts";
import { nodeClock } from "../host/node-clock.ts";
import { StreamDriver } from "../host/stream-driver.ts";
import { TcpPort } from "../host/tcp.ts";
import type { Hello } from "../wire/hello.ts";
import { KeyRing } from "../wire/key-ring.ts";
import type { StreamEnvelope } from "../wire/registry.ts";
import { CAPABILITIES, PROTOCOL } from "../wire/version.ts";
import { placesIn, resolveNames } from "./addresses.ts";
import { ClusterError } from "./errors.ts";
import { helloProblem, type NameOf, requestProblem } from "./fitting.ts";
import { findJob, isJobNickname } from "./job-names.ts";

export { ClusterError } from "./errors.ts";

interface ClusterAddress {
  /** "127.0.0.1:7700" or "gate.example:7700": all known ones; one that answers is enough. */
  readonly managers: readonly string[];
  /** A client's secret, or the cluster's. */
  readonly secret: string;
  readonly cluster?: string;
  readonly environment?: string;
  /** Location of this client: gates there are preferred; "": anywhere. */
  readonly datacenter?: string;
  /** Names of options as the user wrote them; by default their own. */
  readonly nameOf?: NameOf;
}

/** Timeout of one attempt at one manager. */
const ATTEMPT_MS = 5_000;
/** The deadline ends it, not a number of attempts. */
const RETRY: RetryConfig = {
  attemptsMax: Number.POSITIVE_INFINITY,
  baseMs: 200,
  capMs: 2_000,
  jitter: "equal",
};
/** A file of a job, or a function that reads it on demand. */
type FileContent = Uint8Array | (() => Promise<Uint8Array>);

/** A manager may fail while it receives the files; the next one starts over. */
const SUBMIT_ATTEMPTS_MAX = 10;
/** Chunks of a file that one manager may leave unanswered. */
const PUT_FAILURES_MAX = 2;
/** Accepted jobs that this client remembers, the last ones. */
const ACCEPTED_MAX = 1_000;

/** An answer and its sender; both null: none came. */
interface Answered {
  readonly from: Address | null;
  readonly answer: StreamEnvelope | null;
}

interface Decided {
  readonly from: Address | null;
  readonly answer: ClientAnswer;
}

export function hasEnded(status: JobStatus): boolean {
  return ENDED_STATUSES.includes(status);
}

export class ClusterClient {
  readonly #machine: ClientProcess;
  readonly #port = TcpPort.dialer(null);
  readonly #loop: Loop;
  readonly #driven: Driven<ClientInput>;
  readonly #streams: StreamDriver;
  readonly #background = new Background((_name, error) => {
    this.#nameProblem = errorText(error);
  });
  /** Jobs reported as accepted. */
  readonly #accepted = new Set<string>();
  readonly #waiting = new Map<number, (answered: Answered) => void>();
  readonly #random = new Random(randomUUID());
  readonly #nameOf: NameOf;
  /** Null once the host names among its addresses are resolved. */
  #resolve: (() => Promise<readonly Address[]>) | null;
  /** Whether an address is known. */
  #hasAddress: boolean;
  #nameProblem: string | null = null;
  #ids = 1;
  #answers = 0;
  #isClosed = false;

  private constructor(to: ClusterAddress) {
    const { cluster = "hyperscale", environment = "default", managers, secret } = to;
    const { datacenter = "", nameOf = (option) => option } = to;
    const made = KeyRing.create(nodeAead, [secret], `${cluster}/${environment}`);
    if (!made.ok) throw new ClusterError(made.problem, "invalid");
    const hello: Hello = {
      ...{ cluster, environment, datacenter, role: "client", address: "" },
      node: `client-${randomBytes(4).toString("hex")}`,
      ...{ versionMajor: PROTOCOL.major, versionMinor: PROTOCOL.minor },
      ...{ capabilities: CAPABILITIES, nodeVersion: "" },
    };
    const problem = helloProblem(hello, nameOf);
    if (problem !== null) throw new ClusterError(problem, "invalid");
    this.#nameOf = nameOf;
    const { names, numeric } = placesIn(managers);
    this.#resolve = names.length === 0 ? null : () => resolveNames(names, (ms) => this.pause(ms));
    this.#hasAddress = numeric.length > 0;
    const options = { hello, managers: numeric, ring: made.ring };
    this.#machine = new ClientProcess(
      { ...options, entropy: randomBytes, compressor: deflate },
      this.#random.fork("links"),
    );
    this.#loop = new Loop(nodeClock, (error) => {
      throw error;
    });
    this.#driven = this.#loop.add(this.#machine, { kind: "tick" }, (effect) => this.#run(effect));
    this.#streams = new StreamDriver(this.#port, (input) => this.#driven.push(input));
    this.#driven.push({ kind: "start" });
    if (this.#hasAddress) this.#background.run("names", () => this.#findNames());
  }

  /** Connects in the background; the first request waits for it. */
  static open(to: ClusterAddress): ClusterClient {
    return new ClusterClient(to);
  }

  /** Accepted once per key, however often it is sent; returns the job's id. `files`: by their hash. */
  async submit(
    submission: Submission,
    files: ReadonlyMap<BlobHash, FileContent>,
    key: string = randomUUID(),
    routing: Routing = ANYWHERE,
  ): Promise<string> {
    for (let attempt = 1; ; attempt++) {
      const { answer, from } = await this.#decide({ kind: "submit", key, submission, routing });
      if (answer.kind === "accepted") {
        this.#accept(answer.job);
        return answer.job;
      }
      if (answer.kind !== "missing") throw unexpected(answer);
      if (attempt > SUBMIT_ATTEMPTS_MAX || from === null)
        throw new ClusterError("no manager keeps the files of the job", null);
      await this.#putFiles(from, answer.hashes, files);
    }
  }

  #accept(job: string): void {
    this.#accepted.add(job);
    const [oldest] = this.#accepted;
    if (this.#accepted.size > ACCEPTED_MAX && oldest !== undefined) this.#accepted.delete(oldest);
  }

  /** Returns the whole id of a job given by its short id, a unique prefix or `last`. */
  async jobId(text: string): Promise<string> {
    if (!isJobNickname(text)) return text;
    const found = findJob(text, await this.jobs());
    if (!found.ok) throw new ClusterError(found.problem, found.reason);
    return found.id;
  }

  async status(job: string): Promise<JobView> {
    const answer = await this.#request({ kind: "status", job });
    if (answer.kind !== "job") throw unexpected(answer);
    return answer.job;
  }

  /** Events since `line`; live metrics, and the latencies behind them, on request. */
  async progress(job: string, line: number, live: boolean, latencies = false): Promise<Progress> {
    const answer = await this.#request({ kind: "watch", job, line, live, latencies });
    if (answer.kind !== "progress") throw unexpected(answer);
    return answer;
  }

  async control(job: string, control: Control, by: string): Promise<void> {
    // Idempotency key: a delayed request that was retried elsewhere must not be applied after later ones.
    const wish = randomUUID();
    const answer = await this.#request({ kind: "control", job, by, control, wish });
    if (answer.kind !== "controlled") throw unexpected(answer);
  }

  /** In the order of their creation. */
  async jobs(): Promise<readonly JobView[]> {
    const jobs: JobView[] = [];
    for (;;) {
      const answer = await this.#request({ kind: "jobs", after: jobs.at(-1) ?? null });
      if (answer.kind !== "jobs") throw unexpected(answer);
      jobs.push(...answer.jobs);
      if (!answer.more || answer.jobs.length === 0) return jobs;
    }
  }

  /** Events of a job, in order. */
  async events(job: string): Promise<readonly JobEventView[]> {
    const events: JobEventView[] = [];
    for (;;) {
      const answer = await this.#request({ kind: "events", job, from: events.length });
      if (answer.kind !== "events") throw unexpected(answer);
      events.push(...answer.events);
      if (!answer.more || answer.events.length === 0) return events;
    }
  }

  /** Stops assigning new work to the node; `nodes` shows its progress. */
  async drain(node: string): Promise<void> {
    const answer = await this.#request({ kind: "drain", node });
    if (answer.kind !== "controlled") throw unexpected(answer);
  }

  /** All reachable managers forget a lost worker: each has a list of its own. */
  async removeNode(node: string): Promise<void> {
    const value = { kind: "removeNode", node } as const;
    const answer = await this.#request(value);
    if (answer.kind !== "controlled") throw unexpected(answer);
    const message = { name: "clientRequest", correlation: 0, value } as const;
    await Promise.all(this.#machine.connected.map((to) => this.#ask(message, to)));
  }

  async nodes(): Promise<readonly NodeView[]> {
    const answer = await this.#request({ kind: "nodes" });
    if (answer.kind !== "nodes") throw unexpected(answer);
    return answer.nodes;
  }

  async datacenters(): Promise<readonly DatacenterView[]> {
    const answer = await this.#request({ kind: "datacenters" });
    if (answer.kind !== "datacenters") throw unexpected(answer);
    return answer.datacenters.map(({ condition = "", status, ...one }) => ({
      ...one,
      status: condition === "" || status === "unreachable" ? status : condition,
    }));
  }

  /** Ends early when the client is closed. */
  pause(ms: number): Promise<void> {
    return this.#background.pause(ms);
  }

  /** Number of answers from any manager: shows a waiting caller that the cluster is alive. */
  get answers(): number {
    return this.#answers;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#loop.stop();
    for (const answered of this.#waiting.values()) answered({ from: null, answer: null });
    this.#waiting.clear();
    await this.#background.stop(0);
    await this.#port.close();
  }

  #run(effect: ClientEffect): void {
    switch (effect.kind) {
      case "answered": {
        const answered = this.#waiting.get(effect.id);
        this.#waiting.delete(effect.id);
        if (effect.answer !== null) this.#answers++;
        answered?.(effect);
        return;
      }
      case "link":
        return;
      case "dial":
      case "write":
      case "prove":
      case "end":
      case "destroy":
        this.#streams.run(effect);
        return;
      default:
        assertNever(effect);
    }
  }

  #ask(message: StreamEnvelope, to: Address | null): Promise<Answered> {
    const id = ++this.#ids;
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve);
      this.#driven.push({ kind: "ask", id, to, message, timeoutMs: ATTEMPT_MS });
    });
  }

  async #request(value: ClientRequest): Promise<ClientAnswer> {
    return (await this.#decide(value)).answer;
  }

  /** Resolves names once; while none has an address each request tries again. */
  async #findNames(): Promise<void> {
    for (const address of (await this.#resolve?.()) ?? []) {
      this.#hasAddress = true;
      this.#driven.push({ kind: "turn", to: address });
    }
    this.#resolve = null;
  }

  /** Asks one manager after the other until one decides. */
  async #decide(value: ClientRequest): Promise<Decided> {
    const problem = requestProblem(value, this.#nameOf);
    if (problem !== null) throw new ClusterError(problem, "invalid");
    if (!this.#hasAddress) await this.#findNames();
    const job = "job" in value && this.#accepted.has(value.job) ? value.job : null;
    const delays = new RetryDelays(RETRY, this.#random);
    const asking = new Asking(job, performance.now());
    for (;;) {
      if (this.#isClosed) throw new ClusterError("this client is closed", null);
      const message = { name: "clientRequest", correlation: 0, value } as const;
      const { answer: said, from } = await this.#ask(message, null);
      const answer = answerIn(said, from);
      const verdict = asking.take(answer, from, this.#machine, performance.now());
      if (verdict.kind === "decided") return { answer: verdict.answer, from };
      if (verdict.kind === "givenUp") throw this.#unanswered(verdict.refusal);
      this.#driven.push({ kind: "turn", to: verdict.to });
      await this.#background.pause(delays.next(verdict.afterMs) ?? 0);
    }
  }

  #unanswered(last: Refusal | null): ClusterError {
    if (last !== null) return new ClusterError(last.message, last.reason);
    const unnamed = this.#nameProblem === null ? [] : [this.#nameProblem];
    const problems = [...this.#machine.problems(), ...unnamed];
    const detail = problems.length === 0 ? "" : ` (${problems.join("; ")})`;
    const { isRefused } = this.#machine;
    const what = isRefused ? "this client is not taken in" : "nobody answers";
    return new ClusterError(`${what}${detail}`, isRefused ? "invalid" : null);
  }

  /**
   * Sends files to the manager that lacks them, which copies them to the others. When it fails, the next one is asked.
   */
  async #putFiles(
    to: Address,
    hashes: readonly BlobHash[],
    files: ReadonlyMap<BlobHash, FileContent>,
  ): Promise<void> {
    for (const hash of hashes) {
      const content = files.get(hash);
      if (content === undefined) throw new ClusterError(`file ${hash} is wanted`, "invalid");
      const bytes = typeof content === "function" ? await content() : content;
      if (!(await this.#put(to, hash, bytes))) return;
    }
  }

  /** False when the manager does not answer. */
  async #put(manager: Address, hash: BlobHash, bytes: Uint8Array): Promise<boolean> {
    const total = bytes.length;
    let offset = 0;
    for (let failures = 0; failures < PUT_FAILURES_MAX; ) {
      const part = bytes.subarray(offset, offset + BLOB_CHUNK_BYTES_MAX);
      const value = { hash, offset, total, bytes: part };
      const { answer } = await this.#ask({ name: "blobPut", correlation: 0, value }, manager);
      const refused = answer?.name === "refusal" ? answerIn(answer, manager) : null;
      if (refused?.kind === "refused") throw new ClusterError(refused.message, refused.reason);
      if (answer?.name === "denial") {
        const { message, reason, retryAfterMs } = answer.value;
        if (!isPassing(reason)) throw new ClusterError(message, reason);
        await this.#background.pause(retryAfterMs ?? 0);
      }
      if (answer?.name !== "blobHeld") failures++;
      else if (answer.value.bytes >= total) return true;
      else offset = answer.value.bytes;
    }
    return false;
  }
}

/** An unreadable request is final: a retry would not be understood either. */
function answerIn(said: StreamEnvelope | null, from: Address | null): ClientAnswer | null {
  if (said?.name === "clientAnswer") return said.value;
  if (said?.name !== "refusal") return null;
  const why = "most likely it has another version than this client";
  return refusal("invalid", `${from} says: ${said.value.text}; ${why}`);
}

function unexpected(answer: ClientAnswer): ClusterError {
  return new ClusterError(`a manager answered with ${answer.kind}`, null);
}
