/**
 * A few ledger nodes in one virtual time: messages pass the real codec and arrive at once, records become durable when
 * the test says so, nodes can be silenced, killed and restarted.
 */

import { assert } from "../../../base/assert.ts";
import { millis } from "../../../base/brand.ts";
import { ByteWriter } from "../../../base/bytes.ts";
import type { NodeId } from "../../../base/ids.ts";
import { nodeId } from "../../../base/ids.ts";
import { Random } from "../../../base/random.ts";
import type { GroupId } from "../../group/messages.ts";
import { decodeJobState } from "../../job/state-codec.ts";
import { WAL_DEFAULTS } from "../../log/limits.ts";
import { isKnownType } from "../../log/record-types.ts";
import type { GroupKind } from "../application.ts";
import { decodeBatch, encodeBatch } from "../codec.ts";
import { LEDGER_NODE_DEFAULTS, LEDGER_RULES } from "../config.ts";
import type { LedgerAnswer, LedgerRequest, NodeMessage, PeerRequest } from "../messages.ts";
import { LedgerNode } from "../node.ts";
import { LedgerRecovery, snapshotSlices } from "../recovery.ts";
import type { LedgerEffect, LedgerInput, LedgerNodeConfig, LedgerOptions } from "../types.ts";
import { WATCH_ROOM_MAX, type WatchItem, type WatchRequest } from "../watch.ts";
import { TALLY } from "./tally.ts";

export const WALL = 1_700_000_000_000;
const STEP_MS = 20;
const ROUNDS_MAX = 10_000;

interface StoredRecord {
  readonly type: number;
  readonly payload: Uint8Array;
}

interface TestNode {
  readonly id: NodeId;
  node: LedgerNode | null;
  /** Records on disk, over all incarnations. */
  readonly records: StoredRecord[];
  /** Handed out by the present process. */
  pending: StoredRecord[];
  synced: number;
  checkpoint: readonly { readonly lsn: number; readonly slice: Uint8Array }[];
  boots: number;
  readonly archive: Map<string, Uint8Array>;
  /** Identity of the node's disk. */
  identity: string;
  /** Mode of the node's first start on this disk. */
  first: "found" | "join" | null;
  /** Messages from and to it are lost. */
  cut: boolean;
  /** How far its wall clock is wrong. */
  skewMs: number;
  slowDisk: boolean;
}

interface Flight {
  readonly from: TestNode;
  readonly to: NodeId;
  readonly bytes: Uint8Array;
  readonly identity: string;
}

export class TestCluster {
  readonly nodes: TestNode[];
  readonly answers = new Map<number, LedgerAnswer>();
  readonly alarms: string[] = [];
  readonly archived: string[] = [];
  /** Items received by each watch, by token. */
  readonly watched = new Map<number, WatchItem[]>();
  /** Sees every batch on its way. */
  onSend: (from: NodeId, to: NodeId, messages: readonly NodeMessage[]) => void = () => undefined;
  /** Called with a node's effects for its own process. */
  onSaid: (index: number, effect: Extract<LedgerEffect, { kind: "applied" | "leads" }>) => void =
    () => undefined;
  /** Messages that never arrive. */
  isLost: (message: NodeMessage) => boolean = () => false;
  readonly #regions: readonly string[];
  readonly #config: LedgerNodeConfig;
  readonly #shards: readonly number[] | null;
  readonly #identityOf: Pick<LedgerOptions, "identityOf">;
  #configured: number;
  /** Kinds registered at nodes that start from now on. */
  kinds: readonly GroupKind[];
  #net: Flight[] = [];
  #tokens = 0;
  readonly #writer = new ByteWriter(256);
  now = 0;

  /** `shards`: default all. `first`: number of nodes at the start; `grow` adds the rest. */
  constructor(
    regions: readonly string[],
    changes: Partial<LedgerNodeConfig> & Pick<LedgerOptions, "identityOf"> = {},
    shards: readonly number[] | null = null,
    first = regions.length,
    kinds: readonly GroupKind[] = [TALLY],
  ) {
    this.kinds = kinds;
    this.#regions = regions;
    this.#configured = first;
    this.#shards = shards;
    const { identityOf, ...config } = changes;
    this.#identityOf = identityOf === undefined ? {} : { identityOf };
    this.#config = { ...LEDGER_NODE_DEFAULTS, ...config };
    this.nodes = regions.map((_, index) => ({
      id: nodeId(`n${index}`),
      node: null,
      records: [],
      pending: [],
      synced: 0,
      checkpoint: [],
      boots: 0,
      archive: new Map(),
      identity: `disk of n${index}`,
      first: index < first ? "found" : "join",
      cut: false,
      skewMs: 0,
      slowDisk: false,
    }));
    for (const node of this.nodes.slice(0, first)) this.start(node);
    this.settle();
  }

  /** Adds all nodes to every configuration: running ones restart, the rest join. */
  grow(): void {
    this.#configured = this.nodes.length;
    for (const test of this.nodes) {
      this.kill(test);
      this.start(test);
      this.settle();
    }
  }

  at(index: number): TestNode {
    const node = this.nodes[index];
    if (node === undefined) throw new Error(`no node ${index}`);
    return node;
  }

  start(test: TestNode): void {
    const self = test.id;
    const sites = this.nodes.slice(0, this.#configured).map(({ id }, index) => ({
      node: id,
      region: this.#regions[index] ?? "here",
    }));
    test.boots++;
    const boot = `b${test.boots}`;
    const { kinds } = this;
    const options = { self, sites, config: this.#config, boot, rules: LEDGER_RULES, kinds };
    const shards = this.#shards === null ? {} : { shards: this.#shards };
    const node = new LedgerNode(
      { ...options, ...shards, ...this.#identityOf },
      new Random(`${self}/${boot}`),
    );
    const recovery = new LedgerRecovery();
    for (const { lsn, slice } of test.checkpoint) recovery.restore(lsn, slice);
    const from = test.checkpoint[0]?.lsn ?? 0;
    test.records.forEach(({ type, payload }, at) => {
      if (at >= from) recovery.apply(at + 1, type, payload);
    });
    if (recovery.problem !== null) throw new Error(recovery.problem);
    test.node = node;
    test.pending = [];
    test.synced = 0;
    const recovered = {
      images: recovery.images(),
      archived: recovery.archived,
      identities: recovery.identities,
    };
    node.recover(recovered, millis(this.now), this.#wall(test));
    node.start(millis(this.now), this.#wall(test), test.first);
    test.first = null;
    this.#drain(test);
  }

  /** An empty disk under the old name, as after `ledger join`. */
  loseDisk(test: TestNode): void {
    this.kill(test);
    test.records.length = 0;
    test.checkpoint = [];
    test.identity = `${test.identity}, another`;
    test.first = "join";
  }

  mayRest(test: TestNode, group: GroupId): void {
    test.node?.take({ kind: "mayRest", group }, millis(this.now), this.#wall(test));
  }

  forget(test: TestNode, groups: readonly GroupId[], by: GroupId): void {
    const input = { kind: "forget", groups, by } as const;
    test.node?.take(input, millis(this.now), this.#wall(test));
    this.#drain(test);
    this.settle();
  }

  /** As at SIGTERM: others lead what this node has led. */
  giveUp(test: TestNode): void {
    test.node?.take({ kind: "giveUp" }, millis(this.now), this.#wall(test));
    this.#drain(test);
    this.settle();
  }

  /** Kills a node; everything not durable is lost. */
  kill(test: TestNode): void {
    test.node = null;
    test.pending = [];
  }

  checkpoint(test: TestNode): void {
    const { node } = test;
    if (node === null) throw new Error("a stopped node takes no checkpoint");
    const lsn = test.records.length + test.pending.length - test.synced;
    test.checkpoint = [...snapshotSlices(node)].map((slice) => ({ lsn, slice }));
  }

  request(index: number, request: LedgerRequest): number {
    const test = this.at(index);
    const token = ++this.#tokens;
    test.node?.take({ kind: "request", token, request }, millis(this.now), this.#wall(test));
    this.#drain(test);
    this.settle();
    return token;
  }

  /** Starts a watch; its items are in `watched`. */
  watch(index: number, request: WatchRequest, room = WATCH_ROOM_MAX): number {
    const token = ++this.#tokens;
    this.watched.set(token, []);
    this.#take(index, { kind: "watch", token, request, room });
    return token;
  }

  makeRoom(index: number, token: number, count: number): void {
    this.#take(index, { kind: "watchRoom", token, count });
  }

  #take(index: number, input: LedgerInput): void {
    const test = this.at(index);
    test.node?.take(input, millis(this.now), this.#wall(test));
    this.#drain(test);
    this.settle();
  }

  /** A shard's primary, here the last node, has a job's group founded at this one. */
  found(index: number, request: Extract<PeerRequest, { kind: "found" }>): void {
    this.deliver(index, { kind: "request", id: 1, request });
  }

  /** Delivers one message from another node, by default the last one. */
  deliver(index: number, message: NodeMessage, sender = this.nodes.length - 1): void {
    const test = this.at(index);
    const from = this.at(sender).id;
    const { identity } = this.at(sender);
    const input = { kind: "messages", from, identity, messages: [message] } as const;
    test.node?.take(input, millis(this.now), this.#wall(test));
    this.#drain(test);
    this.settle();
  }

  /** The answer, after at most this much time. */
  ask(index: number, request: LedgerRequest, withinMs = 20_000): LedgerAnswer {
    const token = this.request(index, request);
    for (let spent = 0; spent < withinMs && !this.answers.has(token); spent += STEP_MS) {
      this.run(STEP_MS);
    }
    const answer = this.answers.get(token);
    if (answer === undefined) throw new Error(`no answer to ${request.kind}`);
    return answer;
  }

  /** Messages and syncs until nothing moves. */
  settle(): void {
    for (let round = 0; round < ROUNDS_MAX; round++) {
      let busy = false;
      for (const test of this.nodes) busy = this.#sync(test) || busy;
      const flights = this.#net;
      this.#net = [];
      for (const flight of flights) busy = this.#deliver(flight) || busy;
      if (!busy) return;
    }
    throw new Error("the nodes never come to rest");
  }

  run(ms: number): void {
    const end = this.now + ms;
    while (this.now < end) {
      this.now += STEP_MS;
      for (const test of this.nodes) {
        const due = test.node?.nextDeadline() ?? null;
        if (due === null || due > this.now) continue;
        test.node?.take({ kind: "tick" }, millis(this.now), this.#wall(test));
        this.#drain(test);
      }
      this.settle();
    }
  }

  #wall(test: TestNode): number {
    return WALL + this.now + test.skewMs;
  }

  #sync(test: TestNode): boolean {
    if (test.node === null || test.slowDisk || test.synced === test.pending.length) return false;
    test.records.push(...test.pending.slice(test.synced));
    test.synced = test.pending.length;
    const input = { kind: "durable", count: test.synced } as const;
    test.node.take(input, millis(this.now), this.#wall(test));
    this.#drain(test);
    return true;
  }

  #deliver({ from, to, bytes, identity }: Flight): boolean {
    const test = this.nodes.find(({ id }) => id === to);
    if (test === undefined || test.node === null || test.cut || from.cut) return false;
    const decoded = decodeBatch(bytes);
    if (!decoded.ok) throw new Error(decoded.problem);
    const { messages } = decoded;
    const input = { kind: "messages", from: from.id, identity, messages } as const;
    test.node.take(input, millis(this.now), this.#wall(test));
    this.#drain(test);
    return true;
  }

  #readArchive(test: TestNode, jobId: string): void {
    const bytes = test.archive.get(jobId);
    const decoded = bytes === undefined ? null : decodeJobState(bytes);
    const state = decoded?.ok === true ? decoded.value : null;
    const input = { kind: "archivedState", jobId, state } as const;
    test.node?.take(input, millis(this.now), this.#wall(test));
    this.#drain(test);
  }

  #drain(test: TestNode): void {
    for (const effect of test.node?.flush() ?? []) this.#carryOut(test, effect);
  }

  #carryOut(test: TestNode, effect: LedgerEffect): void {
    switch (effect.kind) {
      case "send": {
        this.onSend(test.id, effect.to, effect.messages);
        const messages = effect.messages.filter((message) => !this.isLost(message));
        const bytes = encodeBatch(this.#writer, messages);
        const { identity } = test;
        this.#net.push({ from: test, to: effect.to, bytes, identity });
        return;
      }
      case "append":
        // The real log would end the process.
        assert(isKnownType(effect.type), `record type ${effect.type} is in the registry`);
        assert(effect.payload.length <= WAL_DEFAULTS.payloadBytesMax, "a record fits the log");
        test.pending.push({ type: effect.type, payload: effect.payload });
        return;
      case "answer":
        if (this.answers.has(effect.token)) throw new Error("a request is answered once");
        this.answers.set(effect.token, effect.answer);
        return;
      case "alarm":
        this.alarms.push(effect.why);
        return;
      case "archive":
        this.archived.push(effect.jobId);
        test.archive.set(effect.jobId, effect.bytes);
        return;
      case "readArchive":
        this.#readArchive(test, effect.jobId);
        return;
      case "watched":
        this.watched.get(effect.token)?.push(...effect.items);
        return;
      case "applied":
      case "leads":
        this.onSaid(this.nodes.indexOf(test), effect);
        return;
    }
  }
}
