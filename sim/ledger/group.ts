/**
 * One group of replicas on a hostile little network, without codecs: messages are lost, doubled and
 * overtake each other, processes stop, die and come back with what was durable, clocks run apart.
 * The invariants are checked after every step (group-checks.ts); walk.ts makes the schedules.
 */

import { millis } from "../../src/core/base/brand.ts";
import type { NodeId } from "../../src/core/base/ids.ts";
import { nodeId } from "../../src/core/base/ids.ts";
import { Random } from "../../src/core/base/random.ts";
import type { VsrConfig } from "../../src/core/ledger/group/config.ts";
import type { VsrMessage } from "../../src/core/ledger/group/messages.ts";
import type { Origin } from "../../src/core/ledger/group/replica.ts";
import { Replica } from "../../src/core/ledger/group/replica.ts";
import type { VsrRules } from "../../src/core/ledger/group/rules.ts";
import { EMPTY_IMAGE, ImageFold } from "../../src/core/ledger/group/state.ts";
import type {
  GroupImage,
  VsrEffect,
  VsrInput,
  VsrRecord,
} from "../../src/core/ledger/group/types.ts";
import { GroupChecks } from "./group-checks.ts";

interface InFlight {
  readonly from: NodeId;
  readonly to: NodeId;
  readonly message: VsrMessage;
}

export interface GroupNode {
  readonly id: NodeId;
  replica: Replica | null;
  paused: boolean;
  /** Nothing arrives, nothing gets out. */
  deaf: boolean;
  mute: boolean;
  /** Everything it ever persisted; the first `durable` of them are on disk. */
  records: VsrRecord[];
  durable: number;
  /** Records on disk when this process started. */
  base: number;
  /** Folded from what is on disk. */
  disk: ImageFold;
  /** Images of the first `at` records; usable once those are on disk. */
  checkpoints: { readonly at: number; readonly image: GroupImage }[];
  /** Rate and offset of its clock against the world's. */
  rate: number;
  offset: number;
}

interface GroupOptions {
  readonly seed: number | string;
  readonly members: number;
  /** Nodes beside the first members, to be brought in by reconfigurations. */
  readonly spares: number;
  readonly config: VsrConfig;
  readonly rules: VsrRules;
  /** Clocks run up to this much faster than the world's. */
  readonly drift: number;
  readonly damageOnly: boolean;
}

const IN_FLIGHT_MAX = 400;
const PAST_MAX = 200;
const NO_BYTES = new Uint8Array(0);

export class Group {
  readonly nodes: GroupNode[];
  readonly random: Random;
  readonly checks: GroupChecks;
  readonly network: InFlight[] = [];
  /** Delivered once, and perhaps again much later. */
  readonly past: InFlight[] = [];
  now = 0;
  readonly events: string[] = [];
  readonly #options: GroupOptions;
  #proposals = 0;
  #reads = 0;

  constructor(options: GroupOptions) {
    this.#options = options;
    const { leaseMs, leaseReads } = options.config;
    const disk = (id: NodeId): GroupImage =>
      this.nodes.find((node) => node.id === id)?.disk.image ?? EMPTY_IMAGE;
    this.checks = new GroupChecks({ leaseMs, leaseReads, damageOnly: options.damageOnly, disk });
    this.random = new Random(`group/${options.seed}`);
    this.nodes = Array.from({ length: options.members + options.spares }, (_, index) => ({
      id: nodeId(`n${index}`),
      replica: null,
      paused: false,
      deaf: false,
      mute: false,
      records: [],
      durable: 0,
      base: 0,
      disk: new ImageFold(),
      checkpoints: [],
      rate: 1 + this.random.float() * options.drift,
      offset: this.random.below(100_000),
    }));
    const members = this.nodes.slice(0, options.members).map(({ id }) => id);
    for (const node of this.nodes.slice(0, options.members)) {
      this.#start(node, { kind: "founded", members });
    }
  }

  get violation(): string | null {
    return this.checks.violation;
  }

  get primary(): GroupNode | undefined {
    return this.nodes.find((node) => !node.paused && node.replica?.state.acting === true);
  }

  clock(node: GroupNode): number {
    return node.offset + this.now * node.rate;
  }

  #start(node: GroupNode, origin: Origin): void {
    const { config, rules } = this.#options;
    node.records.length = node.durable;
    node.base = node.durable;
    node.paused = false;
    this.checks.started(node.id);
    const random = this.random.fork(`${node.id}/${node.base}/${this.now}`);
    node.replica = new Replica({ self: node.id, config }, origin, random, rules);
    this.#take(node, null, node.replica.start(millis(this.clock(node))));
  }

  step(node: GroupNode, input: VsrInput): void {
    if (node.replica === null || node.paused) return;
    this.#take(node, input, node.replica.step(input, millis(this.clock(node))));
  }

  deliver(index: number): void {
    const flight = this.network[index];
    if (flight === undefined) return;
    const { from, to, message } = flight;
    const node = this.nodes.find(({ id }) => id === to);
    if (node === undefined || node.paused) return;
    this.network.splice(index, 1);
    if (this.past.push(flight) > PAST_MAX) this.past.splice(this.random.below(PAST_MAX), 1);
    if (node.deaf || this.nodes.some(({ id, mute }) => mute && id === from)) return;
    if (node.replica !== null) this.#hear(node, from, message);
    else if (node.records.length === 0 && message.kind === "found") {
      const { epoch, members } = message;
      this.#start(node, { kind: "invited", epoch, members });
    } else if (node.records.length === 0) {
      const reply = { kind: "unknownGroup", epoch: message.epoch } as const;
      this.#send({ from: to, to: from, message: reply });
    }
  }

  #hear(node: GroupNode, from: NodeId, message: VsrMessage): void {
    const { state } = node.replica ?? {};
    if (message.kind === "resign") this.checks.released(node.id, from, message.view);
    const before = state?.peers.get(from)?.acked ?? -1;
    const old = message.kind === "prepareResponse" && message.view !== state?.knownView;
    this.step(node, { kind: "message", from, message });
    const after = state?.peers.get(from)?.acked ?? -1;
    if (old && after > before) {
      this.checks.report(`G5: ${node.id} counts an ack of another view from ${from}`);
    }
  }

  sync(node: GroupNode, upTo: number): void {
    if (node.paused) return;
    const end = Math.min(node.records.length, upTo);
    for (; node.durable < end; node.durable++) {
      const record = node.records[node.durable];
      if (record !== undefined) node.disk.apply(record);
    }
    this.step(node, { kind: "durable", count: node.durable - node.base });
  }

  crash(node: GroupNode): void {
    node.replica = null;
    node.paused = false;
    node.records.length = node.durable;
    node.checkpoints = node.checkpoints.filter(({ at }) => at <= node.durable);
  }

  restart(node: GroupNode): void {
    if (node.replica !== null || node.durable === 0) return;
    const { at, image } = node.checkpoints.at(-1) ?? { at: 0, image: EMPTY_IMAGE };
    const fold = new ImageFold(image);
    for (const record of node.records.slice(at, node.durable)) fold.apply(record);
    this.#start(node, { kind: "recovered", image: fold.image });
    this.checks.restarted(node.id, this.clock(node));
  }

  tick(node: GroupNode): void {
    this.step(node, { kind: "tick" });
  }

  propose(node: GroupNode): string {
    const eventId = `e${this.#proposals++}`;
    this.events.push(eventId);
    this.proposeAgain(node, eventId);
    return eventId;
  }

  proposeAgain(node: GroupNode, eventId: string): void {
    const operation = { eventId, wall: this.#proposals, logical: 0, data: NO_BYTES };
    this.step(node, { kind: "propose", operations: [operation] });
  }

  read(node: GroupNode): void {
    const token = this.#reads++;
    this.checks.readInvoked(token);
    this.step(node, { kind: "read", token });
  }

  /** The state is checkpointed, and the log below it dropped. (VSR-31) */
  compact(node: GroupNode): void {
    if (node.replica === null || node.paused || node.replica.state.commit < 0) return;
    this.step(node, {
      kind: "compact",
      snapshot: { seq: node.replica.state.commit, bytes: NO_BYTES },
    });
    node.checkpoints.push({ at: node.records.length, image: node.replica.image() });
  }

  #send(flight: InFlight): void {
    this.network.push(flight);
    if (this.network.length > IN_FLIGHT_MAX) {
      this.network.splice(this.random.below(this.network.length), 1);
    }
  }

  #take(node: GroupNode, input: VsrInput | null, effects: readonly VsrEffect[]): void {
    const { state } = node.replica ?? {};
    if (state === undefined) return;
    const clock = this.clock(node);
    const observed = { id: node.id, state, durable: node.disk.image, clock };
    for (const effect of effects) {
      if (effect.kind === "persist") node.records.push(effect.record);
      if (effect.kind !== "send") continue;
      this.#send({ from: node.id, to: effect.to, message: effect.message });
    }
    this.checks.after(observed, effects);
    if (input?.kind !== "message") return;
    const { from, message } = input;
    if (message.kind !== "prepare" && message.kind !== "commit") return;
    const follows = state.status === "normal" && state.primary === from;
    if (follows && message.view === state.knownView) this.checks.promised(observed, from, message);
  }
}
