/**
 * A group for scripted tests: messages arrive in order when `settle` is called, disks sync at once unless paused, time
 * moves only by `advance`. Sent messages can be inspected, dropped or kept.
 */

import { millis } from "../../../base/brand.ts";
import type { NodeId } from "../../../base/ids.ts";
import { nodeId } from "../../../base/ids.ts";
import { Random } from "../../../base/random.ts";
import type { VsrConfig } from "../config.ts";
import { VSR_DEFAULTS } from "../config.ts";
import type { VsrMessage } from "../messages.ts";
import type { Origin } from "../replica.ts";
import { Replica } from "../replica.ts";
import { ImageFold } from "../state.ts";
import type { VsrEffect, VsrInput, VsrRecord } from "../types.ts";

const SETTLE_MAX = 10_000;
const NO_BYTES = new Uint8Array(0);

export interface Sent {
  readonly from: string;
  readonly to: string;
  readonly message: VsrMessage;
}

interface Node {
  replica: Replica | null;
  records: VsrRecord[];
  durable: number;
  base: number;
}

export class Trio {
  readonly members: readonly NodeId[];
  now = 0;
  network: Sent[] = [];
  /** Messages that never arrive. */
  lost: (sent: Sent) => boolean = () => false;
  readonly held = new Set<string>();
  /** Replicas that every node prefers last as primary. */
  readonly passedOver = new Set<string>();
  readonly #nodes = new Map<string, Node>();
  readonly #effects = new Map<string, VsrEffect[]>();
  readonly #config: VsrConfig;
  /** Nodes stay awake until sleeping is explicitly allowed. */
  readonly #staysAwake: boolean;

  constructor(
    { staysAwake = false, ...config }: Partial<VsrConfig> & { readonly staysAwake?: boolean } = {},
    names: readonly string[] = ["a", "b", "c"],
  ) {
    this.#staysAwake = staysAwake;
    this.#config = { ...VSR_DEFAULTS, ...config };
    this.members = names.map(nodeId);
    for (const name of names) this.begin(name, { kind: "founded", members: this.members });
    this.settle();
  }

  begin(name: string, origin: Origin): void {
    const before = this.#nodes.get(name);
    const records = before?.records.slice(0, before.durable) ?? [];
    const { length } = records;
    const staysAwake = this.#staysAwake;
    const options = { self: nodeId(name), config: this.#config, standing: this, staysAwake };
    const replica = new Replica(options, origin, new Random(name));
    this.#nodes.set(name, { replica, records, durable: length, base: length });
    this.#effects.set(name, []);
    this.#take(name, replica.start(millis(this.now)));
  }

  at(name: string): Replica {
    const replica = this.#nodes.get(name)?.replica ?? null;
    if (replica === null) throw new Error(`${name} is down`);
    return replica;
  }

  step(name: string, input: VsrInput): readonly VsrEffect[] {
    const node = this.#nodes.get(name);
    if (node?.replica === null || node === undefined) return [];
    const effects = node.replica.step(input, millis(this.now));
    this.#take(name, effects);
    return effects;
  }

  #take(name: string, effects: readonly VsrEffect[]): void {
    const node = this.#nodes.get(name);
    this.#effects.get(name)?.push(...effects);
    for (const effect of effects) {
      if (effect.kind === "persist") node?.records.push(effect.record);
      if (effect.kind !== "send") continue;
      this.network.push({ from: name, to: effect.to, message: effect.message });
    }
    if (!this.held.has(name)) this.sync(name);
  }

  sync(name: string): void {
    const node = this.#nodes.get(name);
    if (node === undefined || node.durable === node.records.length) return;
    node.durable = node.records.length;
    this.step(name, { kind: "durable", count: node.durable - node.base });
  }

  /** Everything arrives, and what comes of it, until all is quiet. */
  settle(): void {
    for (let count = 0; this.network.length > 0; count++) {
      if (count > SETTLE_MAX) throw new Error("messages without end");
      const sent = this.network.shift();
      if (sent === undefined || this.lost(sent)) continue;
      const { from, to, message } = sent;
      const node = this.#nodes.get(to);
      if (node === undefined) this.#meet(to, nodeId(from), message);
      else this.step(to, { kind: "message", from: nodeId(from), message });
    }
  }

  /** Delivers a message to a node that does not know the group yet. */
  #meet(name: string, from: NodeId, message: VsrMessage): void {
    if (message.kind === "found") {
      const { epoch, members } = message;
      this.begin(name, { kind: "invited", epoch, members });
    } else {
      const reply = { kind: "unknownGroup", epoch: message.epoch } as const;
      this.network.push({ from: name, to: from, message: reply });
    }
  }

  advance(ms: number, stepMs = 10): void {
    for (const end = this.now + ms; this.now < end; ) {
      this.now += stepMs;
      for (const [name, node] of this.#nodes) {
        const due = node.replica?.nextDeadline() ?? null;
        if (due !== null && due <= this.now) this.step(name, { kind: "tick" });
      }
      this.settle();
    }
  }

  crash(name: string): void {
    const node = this.#nodes.get(name);
    if (node === undefined) return;
    node.replica = null;
    node.records.length = node.durable;
  }

  /** Removes a node whose disk, and with it its name, is lost. */
  forget(name: string): void {
    this.#nodes.delete(name);
    this.lost = both(this.lost, ({ to, from }) => to === name || from === name);
  }

  restart(name: string): void {
    const node = this.#nodes.get(name);
    const fold = new ImageFold();
    for (const record of node?.records.slice(0, node.durable) ?? []) fold.apply(record);
    this.begin(name, { kind: "recovered", image: fold.image });
  }

  cut(...names: string[]): void {
    this.lost = both(this.lost, ({ from, to }) => names.includes(from) !== names.includes(to));
  }

  mend(): void {
    this.lost = () => false;
  }

  propose(name: string, ...eventIds: string[]): readonly VsrEffect[] {
    const operations = eventIds.map((eventId) => ({
      ...{ eventId, wall: this.now, logical: 0, data: NO_BYTES },
    }));
    return this.step(name, { kind: "propose", operations });
  }

  /** All effects of one kind that a node has had since it started. */
  effects<Kind extends VsrEffect["kind"]>(
    name: string,
    kind: Kind,
  ): Extract<VsrEffect, { kind: Kind }>[] {
    const all = this.#effects.get(name) ?? [];
    return all.filter(
      (effect): effect is Extract<VsrEffect, { kind: Kind }> => effect.kind === kind,
    );
  }

  committed(name: string): string[] {
    return this.effects(name, "committed").map(({ entry }) => entry.eventId);
  }

  get primary(): string | null {
    for (const [name, { replica }] of this.#nodes) if (replica?.state.acting === true) return name;
    return null;
  }
}

type Lost = (sent: Sent) => boolean;

function both(one: Lost, other: Lost): Lost {
  return (sent) => one(sent) || other(sent);
}
