/**
 * A simulated client program: the production machine of a client over simulated streams, driven by the rules of
 * `src/client`. It submits, follows its jobs to their end, controls them, and retries under the same key when the
 * outcome of a submission is unknown. Its requests are durable: after a kill the next process continues with them.
 */

import { assertNever } from "../../src/core/base/assert.ts";
import type { Address } from "../../src/core/base/ids.ts";
import type { Random } from "../../src/core/base/random.ts";
import type { LinkInput } from "../../src/core/cluster/link/types.ts";
import {
  BLOB_CHUNK_BYTES_MAX,
  type ClientAnswer,
  type ClientRequest,
  ENDED_STATUSES,
  type Progress,
} from "../../src/core/cluster/messages.ts";
import { Asking, isPassing } from "../../src/core/cluster/node/asking.ts";
import {
  type ClientEffect,
  type ClientInput,
  ClientProcess,
} from "../../src/core/cluster/node/client-process.ts";
import type { StreamEnvelope } from "../../src/wire/registry.ts";
import { CAPABILITIES, PROTOCOL } from "../../src/wire/version.ts";
import { noCompressor, ringOf, secretOf } from "../kernel/keys.ts";
import type { StreamHost } from "../kernel/streams.ts";
import { Flood } from "./flood.ts";
import type { JobPlan } from "./jobs.ts";
import type { Lifetime } from "./lifetime.ts";
import type { TiersAround } from "./world.ts";

const ATTEMPT_MS = 5_000;
const PAUSE_MS = 200;
const WATCH_MS = 700;
/** How long a missing result is requested from other nodes. */
const RESULT_MS = 30_000;
/** A failed or cancelled job may have no result at all. */
const NO_RESULT_MS = 4_000;

/** Current request of the client. */
interface Wish {
  readonly plan: JobPlan;
  /** Null until it is accepted, as far as the client knows. */
  job: string | null;
  acceptedAt: number;
  endedAt: number;
  /** Controls that were confirmed or rejected. */
  steered: number;
}

type OnAnswer = (answer: StreamEnvelope | null, from: Address | null) => void;

export class SimClient implements StreamHost {
  readonly lifetime: Lifetime;
  readonly #around: TiersAround;
  readonly #random: Random;
  readonly #managers: readonly Address[];
  machine: ClientProcess | null = null;
  wish: Wish | null = null;
  #asks = new Map<number, OnAnswer>();
  #ids = 1;
  #inputs: ClientInput[] = [];
  #stepping = false;
  readonly listens = false;

  readonly flood: Flood;

  constructor(
    around: TiersAround,
    lifetime: Lifetime,
    managers: readonly Address[],
    random: Random,
    datacenters: number,
  ) {
    this.flood = new Flood({
      ...{ name: lifetime.name, world: around.world, checkers: around.checkers, datacenters },
      random: random.fork("flood"),
      askOnce: (request, then) => this.askOnce(request, null, then),
      submitOnce: (plan, then) => this.submitOnce(plan, then),
      after: (delayMs, run) => lifetime.after(delayMs, "step", run),
    });
    this.#around = around;
    this.lifetime = lifetime;
    this.#managers = managers;
    this.#random = random;
  }

  get index(): number {
    return this.lifetime.index;
  }

  get life(): number {
    return this.lifetime.life;
  }

  get powered(): boolean {
    return this.lifetime.powered;
  }

  get name(): string {
    return this.lifetime.name;
  }

  start(): void {
    if (this.lifetime.state !== "down") return;
    this.lifetime.begin();
    const random = this.#random.fork(`life/${this.life}`);
    const entropy = random.fork("entropy");
    this.machine = new ClientProcess(
      {
        hello: {
          ...{ cluster: "simulated", environment: "test", datacenter: "", role: "client" },
          ...{ node: `${this.name}-${this.life}`, address: "", nodeVersion: "" },
          ...{ versionMajor: PROTOCOL.major, versionMinor: PROTOCOL.minor },
          capabilities: CAPABILITIES.filter((one) => one !== "compression"),
        },
        ...{ managers: this.#managers, ring: ringOf([secretOf(0)]), compressor: noCompressor },
        entropy: (count) => Uint8Array.from({ length: count }, () => entropy.below(256)),
      },
      random,
    );
    this.#push({ kind: "start" });
    this.#goOn();
  }

  crash(power: boolean): void {
    if (this.lifetime.state === "down") return;
    this.lifetime.end(power);
    this.machine = null;
    this.#inputs = [];
    this.#asks = new Map();
    this.flood.forget();
    this.#around.streams.abandon(this.index, power);
  }

  deliver(life: number, input: LinkInput): void {
    if (this.life !== life || this.machine === null) return;
    this.lifetime.take(input.stream, () => this.#push(input));
  }

  /** Sets the next job to submit, when the previous one is over. */
  wants(plan: JobPlan): void {
    this.wish = { plan, job: null, acceptedAt: 0, endedAt: 0, steered: 0 };
    this.lifetime.inLife(() => this.#goOn());
  }

  /** Follows a job of another client. */
  attaches(plan: JobPlan, job: string): void {
    const acceptedAt = this.#around.world.now;
    this.wish = { plan: { ...plan, controls: [] }, job, acceptedAt, endedAt: 0, steered: 0 };
    this.lifetime.inLife(() => this.#goOn());
  }

  #goOn(): void {
    const { wish } = this;
    if (wish === null) return;
    if (wish.job === null) this.#submit(wish);
    else this.#follow(wish, wish.job);
  }

  #follow(wish: Wish, job: string): void {
    this.#watch(wish, job);
    this.#steer(wish, job);
  }

  #submit(wish: Wish): void {
    const { key, routing, submission } = wish.plan;
    const submit = { kind: "submit", key, submission, routing } as const;
    this.#request(wish, submit, (answer, from) => {
      if (answer.kind === "missing") {
        this.#putFiles(wish.plan, from, () => this.#submit(wish));
        return;
      }
      this.#around.checkers.onSubmitted(key, answer);
      if (answer.kind !== "accepted") {
        this.#over(wish);
        return;
      }
      wish.job = answer.job;
      wish.acceptedAt = this.#around.world.now;
      this.#follow(wish, answer.job);
    });
  }

  #watch(wish: Wish, job: string): void {
    this.#request(
      wish,
      { kind: "watch", job, line: 0, live: false, latencies: false },
      (answer) => {
        if (answer.kind !== "progress") {
          this.#around.checkers.onLost(job, answer);
          this.#over(wish);
        } else if (!ENDED_STATUSES.includes(answer.status)) this.#watchAgain(wish, job);
        else this.#onEnded(wish, job, answer);
      },
    );
  }

  #watchAgain(wish: Wish, job: string): void {
    this.lifetime.after(WATCH_MS, "step", () => this.#watch(wish, job));
  }

  /** A reported result may have to be fetched from another node. */
  #onEnded(wish: Wish, job: string, progress: Progress): void {
    const { world } = this.#around;
    if (wish.endedAt === 0) wish.endedAt = world.now;
    const hasResult = progress.status === "COMPLETED" || progress.status === "PARTIAL";
    const patienceMs = hasResult ? RESULT_MS : NO_RESULT_MS;
    if (progress.summary === null && world.now - wish.endedAt < patienceMs) {
      this.#push({ kind: "turn", to: null });
      this.#watchAgain(wish, job);
      return;
    }
    this.#around.checkers.onEnded(job, wish.plan, progress);
    this.#over(wish);
  }

  #over(wish: Wish): void {
    if (this.wish !== wish) return;
    this.wish = null;
    this.#around.onIdle(this);
  }

  #steer(wish: Wish, job: string): void {
    const next = wish.plan.controls[wish.steered];
    if (next === undefined) return;
    const { checkers, world } = this.#around;
    const delayMs = Math.max(0, wish.acceptedAt + next.afterMs - world.now);
    this.lifetime.after(delayMs, "step", () => {
      if (this.wish !== wish) return;
      const { control } = next;
      checkers.onSteering(job, control);
      const id = `${wish.plan.key}-${wish.steered}`;
      this.#request(wish, { kind: "control", job, by: this.name, control, wish: id }, (answer) => {
        wish.steered++;
        checkers.onSteered(job, control, answer);
        this.#steer(wish, job);
      });
    });
  }

  /** Asks one node after the other until one decides; a program that gives up is started again. */
  #request(
    wish: Wish,
    value: ClientRequest,
    then: (answer: ClientAnswer, from: Address) => void,
  ): void {
    const asking = new Asking(wish.job, this.lifetime.local);
    const attempt = (): void => {
      if (this.wish !== wish) return;
      if (wish.job === null && this.#around.committed.mayBeginAnew(wish.plan.key)) {
        this.#over(wish);
        return;
      }
      this.#ask({ name: "clientRequest", correlation: 0, value }, null, (said, from) => {
        const answer = said?.name === "clientAnswer" ? said.value : null;
        this.#around.checkers.onClientAnswer(value, answer);
        if (this.#isForgotten(wish, answer)) {
          this.#over(wish);
          return;
        }
        const reach = this.machine ?? { connected: [], isRefused: false };
        const verdict = asking.take(answer, from, reach, this.lifetime.local);
        if (verdict.kind === "again") {
          this.#push({ kind: "turn", to: verdict.to });
          this.lifetime.after(PAUSE_MS + verdict.afterMs, "step", attempt);
          return;
        }
        const final = verdict.kind === "decided" ? verdict.answer : verdict.refusal;
        const isFinal = final !== null && (final.kind !== "refused" || !isPassing(final.reason));
        if (isFinal && from !== null) then(final, from);
        else this.lifetime.after(PAUSE_MS, "step", () => this.#request(wish, value, then));
      });
    };
    attempt();
  }

  #isForgotten({ job }: Wish, answer: ClientAnswer | null): boolean {
    if (job === null || answer?.kind !== "refused" || answer.reason !== "unknownJob") return false;
    return this.#around.committed.mayBeForgotten(job);
  }

  /** Sends one request and ignores the outcome. */
  askOnce(
    value: ClientRequest,
    to: Address | null,
    then: (answer: ClientAnswer | null, from: Address | null) => void,
  ): void {
    this.#ask({ name: "clientRequest", correlation: 0, value }, to, (said, from) => {
      const answer = said?.name === "clientAnswer" ? said.value : null;
      this.#around.checkers.onClientAnswer(value, answer);
      then(answer, from);
    });
  }

  submitOnce(plan: JobPlan, then: (answer: ClientAnswer | null) => void): void {
    const { key, routing, submission } = plan;
    const submit = { kind: "submit", key, submission, routing } as const;
    this.askOnce(submit, null, (answer, from) => {
      if (answer?.kind !== "missing" || from === null) then(answer);
      else this.#putFiles(plan, from, () => this.askOnce(submit, from, then));
    });
  }

  /** Uploads to the manager that lacks the files; on failure the next one is asked. */
  #putFiles(plan: JobPlan, manager: Address, then: () => void): void {
    const [file] = [...plan.files];
    if (file === undefined) then();
    else this.#put(manager, file, { offset: 0, failures: 0 }, then);
  }

  #put(
    manager: Address,
    file: readonly [string, Uint8Array],
    at: { readonly offset: number; readonly failures: number },
    then: () => void,
  ): void {
    const [hash, whole] = file;
    const { failures, offset } = at;
    const bytes = whole.subarray(offset, offset + BLOB_CHUNK_BYTES_MAX);
    const value = { hash, offset, total: whole.length, bytes };
    this.#ask({ name: "blobPut", correlation: 0, value }, manager, (answer) => {
      if (answer?.name === "blobHeld") {
        const held = answer.value.bytes;
        if (held >= whole.length) then();
        else this.#put(manager, file, { offset: held, failures }, then);
      } else if (failures > 0) then();
      else this.#put(manager, file, { offset, failures: failures + 1 }, then);
    });
  }

  #ask(message: StreamEnvelope, to: Address | null, onAnswer: OnAnswer): void {
    const id = ++this.#ids;
    this.#asks.set(id, onAnswer);
    this.#push({ kind: "ask", id, to, message, timeoutMs: ATTEMPT_MS });
  }

  #push(input: ClientInput): void {
    this.#inputs.push(input);
    if (this.#stepping) return;
    this.#stepping = true;
    const { machine } = this;
    while (machine !== null && this.machine === machine) {
      const next = this.#inputs.shift();
      if (next === undefined) break;
      for (const effect of machine.step(next, this.lifetime.local))
        if (this.machine === machine) this.#run(effect);
    }
    this.#stepping = false;
    if (this.machine === null) return;
    this.lifetime.arm(this.machine.nextDeadline(), () => this.#push({ kind: "tick" }));
  }

  #run(effect: ClientEffect): void {
    switch (effect.kind) {
      case "answered": {
        const onAnswer = this.#asks.get(effect.id);
        this.#asks.delete(effect.id);
        onAnswer?.(effect.answer, effect.from);
        return;
      }
      case "link":
        return;
      case "dial":
      case "write":
      case "prove":
      case "end":
      case "destroy":
        this.#around.streams.run(this, effect);
        return;
      default:
        assertNever(effect);
    }
  }
}
