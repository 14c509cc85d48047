/**
 * One group of replicas on a hostile little network, without disks or codecs: messages are lost,
 * doubled and overtake each other, processes die and come back with what was durable. Every schedule
 * is a walk of random choices; the invariants are checked after each.
 */

import { millis } from "../../src/core/base/brand.ts";
import type { NodeId } from "../../src/core/base/ids.ts";
import { nodeId } from "../../src/core/base/ids.ts";
import { Random } from "../../src/core/base/random.ts";
import type { VsrConfig } from "../../src/core/vsr/config.ts";
import type { VsrEffect, VsrInput, VsrRecord } from "../../src/core/vsr/face.ts";
import type { LogEntry, VsrMessage } from "../../src/core/vsr/messages.ts";
import type { Origin } from "../../src/core/vsr/replica.ts";
import { Replica } from "../../src/core/vsr/replica.ts";
import type { VsrRules } from "../../src/core/vsr/rules.ts";
import { ImageFold } from "../../src/core/vsr/state.ts";

interface InFlight {
  readonly from: NodeId;
  readonly to: NodeId;
  readonly message: VsrMessage;
}

export interface GroupNode {
  readonly id: NodeId;
  replica: Replica | null;
  /** Everything it ever persisted; the first `durable` of them are on disk. */
  records: VsrRecord[];
  durable: number;
  /** Records on disk when this process started. */
  base: number;
  applied: LogEntry[];
}

export interface GroupOptions {
  readonly seed: number | string;
  readonly members: number;
  /** Nodes beside the first members, to be brought in by reconfigurations. */
  readonly spares: number;
  readonly config: VsrConfig;
  readonly rules: VsrRules;
}

const IN_FLIGHT_MAX = 400;

export class Group {
  readonly nodes: GroupNode[];
  readonly random: Random;
  readonly #options: GroupOptions;
  readonly network: InFlight[] = [];
  violation: string | null = null;
  now = 0;
  /** What is committed at each place, by whoever committed it first. */
  readonly committed: LogEntry[] = [];
  readonly #primaries = new Map<string, NodeId>();
  readonly events = new Set<string>();
  #proposals = 0;

  constructor(options: GroupOptions) {
    this.#options = options;
    this.random = new Random(`group/${options.seed}`);
    this.nodes = Array.from({ length: options.members + options.spares }, (_, index) => ({
      id: nodeId(`n${index}`),
      replica: null,
      records: [],
      durable: 0,
      base: 0,
      applied: [],
    }));
    const members = this.nodes.slice(0, options.members).map(({ id }) => id);
    for (const node of this.nodes.slice(0, options.members)) {
      this.#start(node, { kind: "founded", members });
    }
  }

  #start(node: GroupNode, origin: Origin): void {
    const { config, rules } = this.#options;
    node.records.length = node.durable;
    node.base = node.durable;
    node.applied = [];
    const random = this.random.fork(`${node.id}/${node.base}/${this.now}`);
    node.replica = new Replica({ self: node.id, config }, origin, random, rules);
    this.#take(node, node.replica.start(millis(this.now)));
  }

  step(node: GroupNode, input: VsrInput): void {
    if (node.replica === null) return;
    this.#take(node, node.replica.step(input, millis(this.now)));
  }

  deliver(index: number): void {
    const [flight] = this.network.splice(index, 1);
    if (flight === undefined) return;
    const { from, to, message } = flight;
    const node = this.nodes.find(({ id }) => id === to);
    if (node === undefined) return;
    if (node.replica !== null) this.step(node, { kind: "message", from, message });
    else if (node.records.length === 0 && message.kind === "found") {
      const { epoch, members } = message;
      this.#start(node, { kind: "invited", epoch, members });
    } else if (node.records.length === 0) {
      const reply = { kind: "unknownGroup", epoch: message.epoch } as const;
      this.#send({ from: to, to: from, message: reply });
    }
  }

  sync(node: GroupNode, upTo: number): void {
    node.durable = Math.min(node.records.length, upTo);
    this.step(node, { kind: "durable", count: node.durable - node.base });
  }

  crash(node: GroupNode): void {
    node.replica = null;
    node.records.length = node.durable;
  }

  restart(node: GroupNode): void {
    if (node.replica !== null || node.durable === 0) return;
    const fold = new ImageFold();
    for (const record of node.records.slice(0, node.durable)) fold.apply(record);
    this.#start(node, { kind: "recovered", image: fold.image });
  }

  tick(node: GroupNode): void {
    this.step(node, { kind: "tick" });
  }

  propose(node: GroupNode): void {
    const eventId = `e${this.#proposals++}`;
    const operation = { eventId, wall: this.#proposals, logical: 0, data: new Uint8Array(0) };
    this.step(node, { kind: "propose", operations: [operation] });
  }

  #send(flight: InFlight): void {
    this.network.push(flight);
    if (this.network.length > IN_FLIGHT_MAX) {
      this.network.splice(this.random.below(this.network.length), 1);
    }
  }

  #take(node: GroupNode, effects: readonly VsrEffect[]): void {
    for (const effect of effects) {
      if (effect.kind === "send") {
        this.#send({ from: node.id, to: effect.to, message: effect.message });
      } else if (effect.kind === "persist") node.records.push(effect.record);
      else if (effect.kind === "committed") this.#onCommitted(node, effect.entry);
      else if (effect.kind === "tookOver") this.#onTookOver(node, effect.view);
      else if (effect.kind === "restored") node.applied = [];
      else if (effect.kind === "broken") this.#report(`I1: ${effect.why}`);
    }
  }

  #onCommitted(node: GroupNode, entry: LogEntry): void {
    const next = node.applied.length;
    if (entry.seq !== next) this.#report(`I4: ${node.id} applies ${entry.seq} after ${next - 1}`);
    node.applied.push(entry);
    const known = this.committed[entry.seq];
    if (known === undefined) {
      this.committed[entry.seq] = entry;
      this.events.add(entry.eventId);
    } else if (known.eventId !== entry.eventId || known.view !== entry.view) {
      this.#report(`I1: ${entry.seq} is ${known.eventId} and ${entry.eventId}`);
    }
  }

  #onTookOver(node: GroupNode, view: number): void {
    const epoch = node.replica?.state.epoch ?? 0;
    const key = `${epoch}/${view}`;
    const other = this.#primaries.get(key);
    if (other !== undefined) this.#report(`I3: ${other} and ${node.id} lead view ${view}`);
    this.#primaries.set(key, node.id);
    for (const entry of this.committed) {
      const own = node.replica?.state.entries.find(({ seq }) => seq === entry.seq);
      if (own?.eventId !== entry.eventId) {
        this.#report(`I2: the primary of view ${view} lacks ${entry.eventId} at ${entry.seq}`);
      }
    }
  }

  #report(text: string): void {
    this.violation ??= text;
  }
}

/** One random walk; null when nothing broke. */
export function walk(options: GroupOptions, steps: number): Group {
  const group = new Group(options);
  const { random, nodes } = group;
  // Some walks are calm and get far, others are wild.
  const wildness = random.pick([0.02, 0.1, 0.3]);
  for (let step = 0; step < steps && group.violation === null; step++) {
    group.now += random.float() * random.pick([5, 50, 300]);
    const node = random.pick(nodes);
    if (random.chance(wildness)) disturb(group, node);
    else if (random.chance(0.45) && group.network.length > 0) {
      group.deliver(random.chance(0.7) ? 0 : random.below(group.network.length));
    } else if (node.records.length > node.durable) {
      group.sync(node, node.durable + 1 + random.below(node.records.length - node.durable));
    } else if (random.chance(0.4)) group.propose(nodes.find(leads) ?? node);
    else {
      const due = node.replica?.nextDeadline() ?? null;
      if (due !== null && random.chance(0.3)) group.now = Math.max(group.now, due);
      group.tick(node);
    }
  }
  return group;
}

const leads = (node: GroupNode): boolean => node.replica?.state.acting === true;

function disturb(group: Group, node: GroupNode): void {
  const { random, network } = group;
  const choice = random.float();
  if (choice < 0.25) group.crash(node);
  else if (choice < 0.6) group.restart(node);
  else if (choice < 0.75) network.splice(random.below(network.length + 1), 1);
  else if (choice < 0.85) {
    const flight = network[random.below(network.length + 1)];
    if (flight !== undefined) network.push(flight);
  } else reconfigure(group, group.nodes.find(leads) ?? node);
}

function reconfigure(group: Group, node: GroupNode): void {
  const state = node.replica?.state;
  if (state === undefined || !state.acting) return;
  const outside = group.nodes.map(({ id }) => id).filter((id) => !state.members.includes(id));
  if (outside.length === 0) return;
  const place = group.random.below(state.members.length);
  const incoming = group.random.pick(outside);
  const members = state.members.map((id, index) => (index === place ? incoming : id));
  group.step(node, { kind: "reconfigure", eventId: `r${group.now}`, members });
}
