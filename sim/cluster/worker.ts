/**
 * A simulated worker: the production machine over simulated streams, with the effects of `src/nodes/worker`: promises
 * on disk, a cache of files, processes for cores.
 */

import { assertNever } from "../../src/core/base/assert.ts";
import type { Address } from "../../src/core/base/ids.ts";
import type { Random } from "../../src/core/base/random.ts";
import { DRAWS, incarnationOf } from "../../src/core/cluster/incarnation.ts";
import type { LinkInput } from "../../src/core/cluster/link/types.ts";
import {
  WorkerProcess,
  type WorkerProcessEffect,
  type WorkerProcessInput,
} from "../../src/core/cluster/node/worker-process.ts";
import type { WorkerRules } from "../../src/core/cluster/worker/rules.ts";
import type { FencedViews } from "../../src/core/cluster/worker/view-fence.ts";
import { CAPABILITIES, PROTOCOL } from "../../src/wire/version.ts";
import { noCompressor, ringOf, secretOf } from "../kernel/keys.ts";
import type { StreamHost } from "../kernel/streams.ts";
import type { BlobDisk } from "./blob-disk.ts";
import { ERROR_KINDS, SimCore } from "./core.ts";
import type { Lifetime } from "./lifetime.ts";
import type { TiersAround } from "./world.ts";

interface WorkerSpec {
  readonly datacenter: string;
  readonly cores: number;
  readonly isolationMs: number;
  readonly rules: WorkerRules;
  readonly managers: readonly { readonly name: string; readonly address: Address }[];
}

type Opened = Extract<WorkerProcessEffect, { kind: "open" }>;

/** Contents of an empty data directory. */
const EMPTY = { starts: 0, views: [] } as const;
const SPAWN_MS_MAX = 100;
const EXIT_MS_MAX = 50;

export class SimWorker implements StreamHost {
  readonly spec: WorkerSpec;
  readonly lifetime: Lifetime;
  readonly blobs: BlobDisk;
  readonly #around: TiersAround;
  readonly #random: Random;
  machine: WorkerProcess | null = null;
  /** Live processes by slot. */
  readonly cores = new Map<number, SimCore>();
  /** Cores that ended before their process started. */
  readonly #unopened = new Set<number>();
  /** On disk. */
  #promises: { readonly starts: number; readonly views: FencedViews };
  /** How often the directory was emptied. */
  directory = 0;
  /** Number of this start, or of the last one. */
  incarnation = 0;
  /** When the last of the pending promises is durable. */
  #keptAt = 0;
  #inputs: WorkerProcessInput[] = [];
  #stepping = false;
  #onDrained: () => void = () => undefined;
  /** Interval of frames during a flood. */
  frameEveryMs = Number.POSITIVE_INFINITY;
  /** Executor processes stand still from and until then. */
  frozen = { from: 0, until: 0 };
  /** When the last message of a manager arrived, in the world's time. */
  heardAt = 0;

  constructor(
    spec: WorkerSpec,
    around: TiersAround,
    lifetime: Lifetime,
    blobs: BlobDisk,
    random: Random,
  ) {
    this.spec = spec;
    this.#around = around;
    this.lifetime = lifetime;
    this.blobs = blobs;
    this.#random = random;
    this.#promises = EMPTY;
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

  /** The durable view of a job; -1: none. */
  promised(job: string): number {
    // The views in use are at the end.
    return this.#promises.views.findLast(([name]) => name === job)?.[1] ?? -1;
  }

  /** No node dials a worker. */
  readonly listens = false;

  start(): void {
    if (this.lifetime.state !== "down") return;
    this.lifetime.begin();
    const { starts, views } = this.#promises;
    this.#promises = { starts: starts + 1, views };
    this.#keptAt = 0;
    const { datacenter, isolationMs, cores, managers, rules } = this.spec;
    const { name } = this;
    const random = this.#random.fork(`life/${this.life}`);
    const draw = random.fork("incarnation").below(DRAWS);
    this.incarnation = incarnationOf(starts + 1, rules.startsDrawn ? draw : 0);
    const { incarnation } = this;
    const entropy = random.fork("entropy");
    this.machine = new WorkerProcess(
      {
        worker: {
          ...{ name, incarnation, cores, version: "1.0.0", isolationMs },
          ...{ errorKinds: ERROR_KINDS.length, boot: `${name}/${this.life}` },
        },
        ...{ views, managers, rules, ring: ringOf([secretOf(0)]), compressor: noCompressor },
        hello: {
          ...{ cluster: "simulated", environment: "test", datacenter, node: name },
          ...{ role: "worker", address: "", nodeVersion: "" },
          ...{ versionMajor: PROTOCOL.major, versionMinor: PROTOCOL.minor },
          capabilities: CAPABILITIES.filter((one) => one !== "compression"),
        },
        entropy: (count) => Uint8Array.from({ length: count }, () => entropy.below(256)),
      },
      random,
    );
    this.machine.watcher = {
      onAnswered: (request, answer) => this.#around.checkers.onAnswered(this, request, answer),
    };
    this.#around.world.note(`${name} starts, incarnation ${incarnation}`);
    this.heardAt = this.#around.world.now;
    this.#push({ kind: "start" });
  }

  deliver(life: number, input: LinkInput): void {
    if (this.life !== life || this.machine === null) return;
    this.lifetime.take(input.stream, () => {
      if (input.kind === "bytes") this.heardAt = this.#around.world.now;
      this.#push(input);
    });
  }

  /** Drains as on SIGTERM: `then` runs when nothing of any job is left, or after the drain timeout. */
  drain(then: () => void): void {
    this.lifetime.inLife(() => {
      this.#around.world.note(`${this.name} drains`);
      this.#onDrained = then;
      this.#push({ kind: "drain" });
    });
  }

  crash(power: boolean): void {
    if (this.lifetime.state === "down") return;
    this.lifetime.end(power);
    this.machine = null;
    this.#inputs = [];
    this.#unopened.clear();
    for (const core of this.cores.values()) core.die();
    this.cores.clear();
    this.blobs.crash();
    this.#around.streams.abandon(this.index, power);
  }

  /** Empties the data directory of a stopped worker. */
  wipe(): void {
    this.directory++;
    this.#promises = EMPTY;
    this.blobs.wipe();
  }

  /** Kills one of its executor processes. */
  killCore(draw: number): void {
    const slots = [...this.cores.keys()];
    const slot = slots[draw % Math.max(1, slots.length)];
    if (slot !== undefined) this.#lose(slot, "an executor core ended with SIGKILL");
  }

  /** Queues inputs that arrive while another one is processed. */
  #push(input: WorkerProcessInput): void {
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
    this.#around.checkers.onWorker(this);
    this.lifetime.arm(this.machine.nextDeadline(), () => this.#push({ kind: "tick" }));
  }

  #run(effect: WorkerProcessEffect): void {
    const { streams, world } = this.#around;
    switch (effect.kind) {
      case "dial":
      case "write":
      case "prove":
      case "end":
      case "destroy":
        streams.run(this, effect);
        return;
      case "endCore":
        this.#end(effect.slot, effect.kill);
        return;
      case "lookUp": {
        const missing = effect.files.filter(({ hash }) => !this.blobs.has(hash));
        this.#push({ kind: "lookedUp", job: effect.job, missing });
        return;
      }
      case "keep": {
        const { bytes, hash, job } = effect;
        this.blobs.keep(hash, bytes, (problem) => {
          this.lifetime.inLife(() =>
            this.#push({ kind: "kept", job, hash, problem, isDamaged: false }),
          );
        });
        return;
      }
      case "open":
        this.#spawn(effect);
        return;
      case "command":
        this.cores.get(effect.slot)?.handle(effect.command);
        return;
      case "closed":
        return;
      case "keepViews":
        this.#keep(effect.views);
        return;
      case "log":
        world.note(`${this.name} ${effect.event} ${JSON.stringify(effect.fields)}`);
        if (effect.event === "worker.isolated") this.#around.truth.isolated.add(this.name);
        return;
      case "drained":
        // The process exits in the next turn: this one is not over yet.
        this.lifetime.after(0, "step", this.#onDrained);
        return;
      default:
        assertNever(effect);
    }
  }

  /** One after the other, as in `src/nodes/worker/promises.ts`. */
  #keep(views: FencedViews): void {
    const { now } = this.#around.world;
    this.#keptAt = Math.max(now, this.#keptAt) + this.blobs.drawSyncMs();
    this.lifetime.after(this.#keptAt - now, "synced", () => {
      this.#promises = { ...this.#promises, views };
      this.#push({ kind: "viewsKept" });
    });
  }

  #spawn({ job, opened, order }: Opened): void {
    const { committed, truth, world } = this.#around;
    this.lifetime.after(this.#random.float() * SPAWN_MS_MAX, "synced", () => {
      const entry = order.files.find(({ path }) => path === order.entry);
      const bundle = this.blobs.read(entry?.hash ?? "") ?? new Uint8Array();
      for (const { core, slot } of opened) {
        if (this.#unopened.delete(slot)) continue;
        const { life, name: worker, index } = this;
        const { datacenter } = this.spec;
        const random = this.#random.fork(`core/${life}/${slot}`);
        const made: SimCore = new SimCore({
          ...{ job, datacenter, worker, core, index, bundle, world, truth, committed, random },
          frameEveryMs: () => this.frameEveryMs,
          frozenUntil: () => this.frozen.until,
          send: (event) => {
            if (this.cores.get(slot) !== made || this.life !== life) return;
            this.lifetime.inLife(() => this.#push({ kind: "core", slot, event }));
          },
        });
        this.cores.set(slot, made);
      }
    });
  }

  #lose(slot: number, what: string | null): void {
    this.cores.get(slot)?.die();
    this.cores.delete(slot);
    this.lifetime.after(this.#random.float() * EXIT_MS_MAX, "step", () => {
      this.#push({ kind: "coreGone", slot, what });
    });
  }

  #end(slot: number, kill: boolean): void {
    if (!this.cores.has(slot)) {
      this.#unopened.add(slot);
      this.#push({ kind: "coreGone", slot, what: null });
      return;
    }
    this.#lose(slot, kill ? "an executor core ended with SIGKILL" : null);
  }
}
