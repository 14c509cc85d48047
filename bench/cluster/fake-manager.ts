/**
 * The only manager of a datacenter as a gate sees it: it accepts files and jobs over a real connection, starts them on
 * request, and then sends prerecorded merged frames, one per poll.
 */

import { randomBytes } from "node:crypto";
import type { Millis } from "../../src/core/base/brand.ts";
import { Random } from "../../src/core/base/random.ts";
import type { GateAnswer, GateRequest, Observed } from "../../src/core/cluster/gate-messages.ts";
import { QUEUE_LIMITS } from "../../src/core/cluster/link/limits.ts";
import { type Incoming, Links } from "../../src/core/cluster/link/links.ts";
import { LINK_RULES } from "../../src/core/cluster/link/rules.ts";
import type { LinkEffect, LinkInput } from "../../src/core/cluster/link/types.ts";
import { encodeTold } from "../../src/core/cluster/manager/run-result.ts";
import { type ClientAnswer, type ClientRequest, refusal } from "../../src/core/cluster/messages.ts";
import { deflate } from "../../src/host/deflate.ts";
import { Loop } from "../../src/host/loop.ts";
import { nodeClock } from "../../src/host/node-clock.ts";
import { StreamDriver } from "../../src/host/stream-driver.ts";
import { TcpPort } from "../../src/host/tcp.ts";
import { parseAddress } from "../../src/wire/address.ts";
import type { KeyRing } from "../../src/wire/key-ring.ts";
import type { StreamEnvelope } from "../../src/wire/registry.ts";
import { CAPABILITIES, PROTOCOL } from "../../src/wire/version.ts";

const PLACES = { total: 64, perHost: 64, forMembers: 0 };
const HEALTH = { hasQuorum: true, accepting: true, accepted: 0, dispatched: 0, dispatchable: 0 };
const VITALS = { cpu: 0.6, residentBytes: 120e6, activeUsers: 50 };

interface FakeManagerOptions {
  readonly name: string;
  readonly datacenter: string;
  readonly address: string;
  readonly cores: number;
  readonly ring: KeyRing;
  /** Frames of one datacenter, each written against the previous one. */
  readonly frames: readonly Uint8Array[];
}

export class FakeManager {
  /** Frames that the gate has merged. */
  merged = 0;
  readonly #options: FakeManagerOptions;
  readonly #port: TcpPort;
  readonly #links: Links;
  readonly #loop: Loop;
  #effects: LinkEffect[] = [];
  #now = 0 as Millis;
  /** The workflow of the job that was submitted. */
  #workflow = "";
  /** Milliseconds of the wall clock; null: not started. */
  #startedAtMs: number | null = null;

  private constructor(options: FakeManagerOptions, port: TcpPort) {
    this.#options = options;
    this.#port = port;
    const { address, datacenter, name, ring } = options;
    const nothing = (): void => undefined;
    this.#links = new Links(
      {
        hello: {
          ...{ cluster: "hyperscale", environment: "default", datacenter, node: name },
          ...{ role: "manager", address, nodeVersion: "bench", capabilities: CAPABILITIES },
          ...{ versionMajor: PROTOCOL.major, versionMinor: PROTOCOL.minor },
        },
        ...{ ring, entropy: randomBytes, compressor: deflate },
        ...{ limits: QUEUE_LIMITS, rules: LINK_RULES },
        emit: (effect) => this.#effects.push(effect),
      },
      {
        refusePeer: () => "it calls nobody",
        opening: () => ({ name: "clientOpening", correlation: 1, value: { client: name } }),
        refuseOpened: () => "it calls nobody",
        ...{ onSent: nothing, onUp: nothing, onDown: nothing, onPush: nothing },
        ...{ onDropped: nothing, onMessage: nothing, onGone: nothing },
        onRequest: (incoming) => this.#onRequest(incoming),
      },
      new Random(name),
    );
    this.#loop = new Loop(nodeClock, (error) => {
      throw error;
    });
    const driven = this.#loop.add(this, { kind: "tick" }, (effect) => streams.run(effect));
    const streams: StreamDriver = new StreamDriver(port, (input) => driven.push(input));
  }

  static async start(options: FakeManagerOptions): Promise<FakeManager> {
    const place = parseAddress(options.address);
    if (!place.ok) throw new Error(`${options.address} is no address`);
    const { host, port } = place;
    const listening = { host, port, tls: null, places: PLACES, isMember: () => true };
    return new FakeManager(options, await TcpPort.listen(listening));
  }

  get isRunning(): boolean {
    return this.#startedAtMs !== null;
  }

  async close(): Promise<void> {
    this.#loop.stop();
    await this.#port.close();
  }

  step(input: LinkInput | { readonly kind: "tick" }, now: Millis): readonly LinkEffect[] {
    this.#now = now;
    if (input.kind === "tick") this.#links.tick(now);
    else this.#links.take(input, now);
    const effects = this.#effects;
    this.#effects = [];
    return effects;
  }

  nextDeadline(): Millis | null {
    return this.#links.nextDeadline() as Millis | null;
  }

  #onRequest(incoming: Incoming): void {
    const answer = this.#answer(incoming.message);
    if (answer === null) this.#links.refuse(incoming, "BENCH", "that is not asked", this.#now);
    else this.#links.answer(incoming.stream, answer, this.#now);
  }

  #answer({ correlation, name, value }: StreamEnvelope): StreamEnvelope | null {
    const { address, name: manager } = this.#options;
    switch (name) {
      case "clientOpening":
        return { name: "opened", correlation, value: { manager, addresses: [address] } };
      case "blobPut":
        return { name: "blobHeld", correlation, value: { bytes: value.total } };
      case "clientRequest":
        return { name: "clientAnswer", correlation, value: this.#ofClient(value) };
      case "gateRequest":
        return { name: "gateAnswer", correlation, value: this.#ofGate(value) };
      default:
        return null;
    }
  }

  #ofClient(request: ClientRequest): ClientAnswer {
    if (request.kind === "submit") {
      this.#workflow = request.submission.manifests[0]?.name ?? "";
      return { kind: "accepted", job: `${this.#options.datacenter}-1`, duplicate: false };
    }
    if (request.kind !== "control") return refusal("invalid", "that is not asked");
    if (request.control.kind === "start") this.#startedAtMs = request.control.atMs;
    return { kind: "controlled" };
  }

  #ofGate(request: GateRequest): GateAnswer {
    const { cores } = this.#options;
    if (request.kind === "observe") return this.#observed(request.held?.frames[0]?.frame ?? 0);
    const room = { workers: 1, cores, coresFree: cores, jobsQueued: 0 };
    return { kind: "capacity", ...room, health: HEALTH };
  }

  /** `held`: the frame that the gate has. */
  #observed(held: number): Observed {
    this.merged = Math.max(this.merged, held);
    const status = this.isRunning ? "RUNNING" : "STARTING";
    return {
      ...{ kind: "observed", status, reason: null, prepared: !this.isRunning, factor: 1 },
      ...{ workers: 1, cores: this.#options.cores, lines: [], nextLine: 0, live: null },
      ...{ result: null, requests: held, failed: 0, view: 1, told: this.#told(held), clock: null },
    };
  }

  #told(held: number): Uint8Array | null {
    const frame = this.#options.frames[held];
    if (!this.isRunning || frame === undefined) return null;
    const own = { name: this.#workflow, status: "running", error: null, vitals: VITALS } as const;
    const timing = { pauses: [], factors: [] };
    const workflow = { ...own, startedAtMs: this.#startedAtMs, timing, frame };
    return encodeTold({ workflows: [workflow], waits: [] });
  }
}
