/**
 * A worker as its manager sees it, without executor cores: it accepts orders over a real connection and sends
 * prerecorded merged frames, each when the previous one was acknowledged and its time has come.
 */

import { randomBytes } from "node:crypto";
import type { Millis } from "../../src/core/base/brand.ts";
import type { Address } from "../../src/core/base/ids.ts";
import { Random } from "../../src/core/base/random.ts";
import { QUEUE_LIMITS } from "../../src/core/cluster/link/limits.ts";
import { Links } from "../../src/core/cluster/link/links.ts";
import { LINK_RULES } from "../../src/core/cluster/link/rules.ts";
import type { LinkEffect, LinkInput } from "../../src/core/cluster/link/types.ts";
import {
  HEARTBEAT_MS,
  type Order,
  type RelayedCommand,
  type WorkerEvent,
} from "../../src/core/cluster/messages.ts";
import type { MergedFigures } from "../../src/core/load/job/core-messages.ts";
import { deflate } from "../../src/host/deflate.ts";
import { type Driven, Loop } from "../../src/host/loop.ts";
import { nodeClock } from "../../src/host/node-clock.ts";
import { StreamDriver } from "../../src/host/stream-driver.ts";
import { TcpPort } from "../../src/host/tcp.ts";
import type { KeyRing } from "../../src/wire/key-ring.ts";
import { encodeStreamMessage, type StreamEnvelope } from "../../src/wire/registry.ts";
import { CAPABILITIES, PROTOCOL } from "../../src/wire/version.ts";

const FRAME_MS = 100;
const VERSION = "bench";
const MANAGER = "m1";
const ROW_EVENTS_MAX = 256;

/** Above the numbers of all other requests. */
const PROBES_FROM = 1_000_000_000;

type Input =
  | LinkInput
  | { readonly kind: "start" }
  | { readonly kind: "tick" }
  | { readonly kind: "probe"; readonly correlation: number };
type Events = Extract<StreamEnvelope, { name: "events" }>["value"];

interface FakeWorkerOptions {
  readonly name: string;
  readonly cores: number;
  readonly manager: Address;
  readonly ring: KeyRing;
  readonly frames: readonly MergedFigures[];
  /** Requests no work. */
  readonly draining?: true;
}

export class FakeWorker {
  readonly #options: FakeWorkerOptions;
  readonly #links: Links;
  readonly #loop: Loop;
  readonly #driven: Driven<Input>;
  readonly #port = TcpPort.dialer(null);
  readonly #probes = new Map<number, () => void>();
  #effects: LinkEffect[] = [];
  #now = 0 as Millis;
  #isUp = false;
  #beatAt = Number.POSITIVE_INFINITY;
  #frameAt = Number.POSITIVE_INFINITY;
  #job: Pick<Events, "job" | "view"> | null = null;
  #cores: number[] = [];
  #execution = 0;
  /** Executions started here. */
  #running = 0;
  #waiting: WorkerEvent[] = [];
  #first = 0;
  #underWay = 0;
  #nextOrder = 0;
  #sent = 0;
  #probed = 0;
  /** Frames of this worker that the manager has acknowledged. */
  acknowledged = 0;

  constructor(options: FakeWorkerOptions) {
    this.#options = options;
    const { cores, manager, name, ring } = options;
    this.#links = new Links(
      {
        hello: {
          ...{ cluster: "hyperscale", environment: "default", datacenter: "dc1", node: name },
          ...{ role: "worker", address: "", nodeVersion: VERSION, capabilities: CAPABILITIES },
          ...{ versionMajor: PROTOCOL.major, versionMinor: PROTOCOL.minor },
        },
        ...{ ring, entropy: randomBytes, compressor: deflate },
        ...{ limits: QUEUE_LIMITS, rules: LINK_RULES },
        emit: (effect) => this.#effects.push(effect),
      },
      {
        refusePeer: () => null,
        opening: () => this.#heartbeat(1),
        refuseOpened: (_peer, said) => (said.name === "opened" ? null : said.name),
        ...{ onSent: () => undefined, onDropped: () => undefined, onGone: () => undefined },
        onUp: () => this.#onUp(),
        onDown: () => {
          this.#isUp = false;
        },
        onPush: (_manager, message) => this.#onMessage(message),
        onRequest: () => undefined,
        onMessage: () => undefined,
      },
      new Random(name),
    );
    this.#links.keep(MANAGER, manager);
    this.#loop = new Loop(nodeClock, (error) => {
      throw error;
    });
    this.#driven = this.#loop.add(this, { kind: "tick" }, (effect) => streams.run(effect));
    const streams = new StreamDriver(this.#port, (input) => this.#driven.push(input));
    this.#driven.push({ kind: "start" });
    this.#cores = Array.from({ length: cores }, () => -1);
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  get isStreaming(): boolean {
    return this.#running > 0;
  }

  /** Measures the round trip of an answered heartbeat, as the first one is, in milliseconds. */
  probe(): Promise<number> {
    const [at, correlation] = [performance.now(), PROBES_FROM + ++this.#probed];
    return new Promise((resolve) => {
      this.#probes.set(correlation, () => resolve(performance.now() - at));
      this.#driven.push({ kind: "probe", correlation });
    });
  }

  async close(): Promise<void> {
    this.#loop.stop();
    await this.#port.close();
  }

  step(input: Input, now: Millis): readonly LinkEffect[] {
    this.#now = now;
    if (input.kind === "start") this.#links.call(now);
    else if (input.kind === "tick") this.#links.tick(now);
    else if (input.kind === "probe") this.#send(this.#heartbeat(input.correlation));
    else this.#links.take(input, now);
    if (this.#beatAt <= now) {
      this.#beatAt = now + HEARTBEAT_MS;
      this.#send(this.#heartbeat(0));
    }
    if (this.#frameAt <= now) this.#frame();
    this.#sendEvents();
    const effects = this.#effects;
    this.#effects = [];
    return effects;
  }

  nextDeadline(): Millis | null {
    const links = this.#links.nextDeadline() ?? Number.POSITIVE_INFINITY;
    const at = Math.min(links, this.#beatAt, this.#frameAt);
    return at === Number.POSITIVE_INFINITY ? null : (at as Millis);
  }

  #onUp(): void {
    this.#isUp = true;
    this.#beatAt = this.#now + HEARTBEAT_MS;
  }

  #heartbeat(correlation: number): StreamEnvelope {
    const { cores, name: worker } = this.#options;
    const draining = this.#options.draining === true;
    const own = { worker, incarnation: 1, cores, version: VERSION, draining, boot: worker };
    const value = { ...own, running: this.#running, advance: this.acknowledged };
    return { name: "heartbeat", correlation, value };
  }

  #send(message: StreamEnvelope): void {
    this.#links.send(MANAGER, encodeStreamMessage(message), this.#now);
  }

  #onMessage({ correlation, name, value }: StreamEnvelope): void {
    if (name === "opened") {
      this.#probes.get(correlation)?.();
      this.#probes.delete(correlation);
    } else if (name === "announce") {
      this.#job = { job: value.job, view: value.view };
      this.#send({ name: "announced", correlation, value: { cores: [], events: 0 } });
    } else if (name === "orders") {
      this.#job = { job: value.job, view: value.view };
      for (const [at, order] of value.orders.entries()) {
        if (value.first + at !== this.#nextOrder) continue;
        this.#nextOrder++;
        this.#onOrder(order);
      }
      this.#send({ name: "taken", correlation, value: { next: this.#nextOrder } });
    } else if (name === "taken") {
      const count = value.next - this.#first;
      this.#waiting.splice(0, count);
      this.#first += count;
      this.#underWay = 0;
      for (const { frame } of value.held ?? [])
        this.acknowledged = Math.max(this.acknowledged, frame);
    }
  }

  #onOrder(order: Order): void {
    if (order.kind === "open") {
      this.#cores = [...order.cores];
      for (const core of order.cores)
        this.#waiting.push({ kind: "core", core, event: { kind: "loaded", manifests: [] } });
    } else if (order.kind === "command") this.#onCommand(order.core, order.command);
    else if (order.kind === "release") this.#frameAt = Number.POSITIVE_INFINITY;
  }

  #onCommand(core: number, command: RelayedCommand): void {
    const say = (event: Extract<WorkerEvent, { kind: "core" }>["event"]): void => {
      this.#waiting.push({ kind: "core", core, event });
    };
    switch (command.kind) {
      case "prepare":
        say({ kind: "prepared", execution: command.execution });
        return;
      case "setup":
        say({ kind: "setupDone", execution: command.execution, value: null });
        return;
      case "start":
        this.#execution = command.execution;
        if (this.#running++ === 0) this.#frameAt = this.#now + Math.random() * FRAME_MS;
        return;
      case "acknowledge":
        this.acknowledged = Math.max(this.acknowledged, command.frame);
        return;
      default:
    }
  }

  /** Skips a frame that the manager is not ready for. */
  #frame(): void {
    this.#frameAt = Math.max(this.#frameAt + FRAME_MS, this.#now);
    if (this.acknowledged < this.#sent) return;
    const recorded = this.#options.frames[this.#sent];
    if (recorded === undefined) return;
    this.#sent++;
    const cores = recorded.cores.map((one, at) => ({ ...one, core: this.#cores[at] ?? 0 }));
    const execution = this.#execution;
    this.#waiting.push({ kind: "figures", ...recorded, execution, cores });
  }

  #sendEvents(): void {
    if (this.#job === null || this.#underWay > 0 || this.#waiting.length === 0) return;
    const events = this.#waiting.slice(0, ROW_EVENTS_MAX);
    this.#underWay = events.length;
    const worker = { worker: this.#options.name, incarnation: 1 };
    const value = { ...worker, ...this.#job, first: this.#first, events, wantsHeld: true };
    this.#send({ name: "events", correlation: this.#first + 2, value });
  }
}
