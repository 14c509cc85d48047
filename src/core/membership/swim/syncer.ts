/**
 * Whole tables over streams: joining, periodic push/pull for what gossip missed, and retries of lost members so that
 * isolation heals however long it lasted.
 *
 * - While we know no member, every seed is tried in parallel, with backoff (BOOT-2, BOOT-5).
 * - Later one missing address is tried per interval with probability missing/live: the whole cluster tries at a
 *   constant rate, and an isolated member tries every time.
 * - A `dead` line in a peer's table only makes us suspect: it may be the peer that was cut off. (B-38)
 */

import type { Address, NodeId } from "../../base/ids.ts";
import type { SwimContext } from "./context.ts";
import { EXCHANGES_MAX, JOINS_PARALLEL_MAX, LOST_ADDRESSES_MAX } from "./limits.ts";
import type { Member } from "./member-table.ts";
import { isLive } from "./member-table.ts";
import type { Membership } from "./membership.ts";
import type { MemberState, SwimStreamPacket } from "./messages.ts";

interface Exchange {
  readonly purpose: "join" | "pushPull" | "reconnect" | "ping";
  readonly address: Address;
  /** For a ping: the requested member. */
  readonly target: NodeId | null;
  readonly openedAt: number;
}

const JOIN_BACKOFF_MS = 500;
const JOIN_BACKOFF_MAX_MS = 15_000;
const JOIN_JITTER = 0.25;
const PUSH_PULL_SCALE_FROM = 32;

export class Syncer {
  readonly #context: SwimContext;
  readonly #membership: Membership;
  readonly #exchanges = new Map<number, Exchange>();
  readonly #seeds = new Set<Address>();
  /** Where forgotten members lived. */
  readonly #lost = new Set<Address>();
  #exchangeCount = 0;
  #pushPullAt = 0;
  #retryAt = 0;
  #backoffMs = JOIN_BACKOFF_MS;
  onStreamAck: (target: NodeId) => void = () => {};
  onStreamPingFailed: (target: NodeId, refused: boolean) => void = () => {};

  constructor(context: SwimContext, membership: Membership) {
    this.#context = context;
    this.#membership = membership;
    for (const seed of context.options.seeds) this.#addSeed(seed);
  }

  get exchangeCount(): number {
    return this.#exchanges.size;
  }

  isSeed(address: Address): boolean {
    return this.#seeds.has(address);
  }

  start(): void {
    const { now, random, config } = this.#context;
    this.#pushPullAt = now + random.float() * config.pushPullIntervalMs;
    this.#retryAt = now;
  }

  join(seeds: readonly Address[]): void {
    for (const seed of seeds) this.#addSeed(seed);
    this.#retryAt = this.#context.now;
    this.#backoffMs = JOIN_BACKOFF_MS;
  }

  #addSeed(seed: Address): void {
    if (seed !== this.#context.self.address) this.#seeds.add(seed);
  }

  nextDeadline(): number {
    return Math.min(this.#pushPullAt, this.#retryAt);
  }

  tick(): void {
    const { now, leaving } = this.#context;
    if (leaving) {
      this.#pushPullAt = Number.POSITIVE_INFINITY;
      this.#retryAt = Number.POSITIVE_INFINITY;
      return;
    }
    this.#expireExchanges();
    if (now >= this.#retryAt) this.#retryMissing();
    if (now >= this.#pushPullAt) this.#pushPull();
  }

  #retryMissing(): void {
    const { now, random, config, table, rules } = this.#context;
    const alone = table.liveCount === 1;
    const missing = rules.reconnect || alone ? this.#missing() : [];
    if (alone && this.#seeds.size > 0) {
      const first = random.shuffle([...missing]).slice(0, JOINS_PARALLEL_MAX);
      for (const address of first) this.#open("join", address, null, config.streamTimeoutMs);
      const waitMs = this.#backoffMs * (1 + JOIN_JITTER * random.float());
      this.#backoffMs = Math.min(JOIN_BACKOFF_MAX_MS, this.#backoffMs * 2);
      this.#retryAt = now + Math.min(waitMs, 3 * config.reconnectIntervalMs);
      return;
    }
    this.#backoffMs = JOIN_BACKOFF_MS;
    this.#retryAt = now + config.reconnectIntervalMs * (0.75 + 0.5 * random.float());
    if (missing.length === 0) return;
    if (!random.chance(missing.length / (table.liveCount - 1 || 1))) return;
    this.#open("reconnect", random.pick(missing), null, config.streamTimeoutMs);
  }

  /** Addresses that should answer as members and do not: seeds, the dead, the forgotten. */
  #missing(): Address[] {
    const { table } = this.#context;
    const missing: Address[] = [];
    const add = (address: Address): void => {
      const holder = table.atAddress(address);
      if (holder === undefined || !isLive(holder)) missing.push(address);
    };
    for (const seed of this.#seeds) add(seed);
    for (const address of this.#lost) add(address);
    for (const member of table.all()) {
      if (member.status === "dead" && !this.#seeds.has(member.record.address)) {
        missing.push(member.record.address);
      }
    }
    return missing;
  }

  #pushPull(): void {
    const { now, config, table, random, counts } = this.#context;
    this.#pushPullAt = now + config.pushPullIntervalMs * pushPullScale(table.liveCount);
    const alive = (member: Member): boolean => member.status === "alive";
    const [known] = table.pick(1, random, (member) => alive(member) && member.confirmed);
    const peer = known ?? table.pick(1, random, alive)[0];
    if (peer === undefined) return;
    counts.pushPulls++;
    this.#open("pushPull", peer.record.address, null, config.streamTimeoutMs);
  }

  /** A stranger talked to us: learn who it is, unless we are asking already. */
  meet(address: Address): void {
    const { config, leaving } = this.#context;
    if (leaving) return;
    for (const exchange of this.#exchanges.values()) if (exchange.address === address) return;
    this.#open("join", address, null, config.streamTimeoutMs);
  }

  pingByStream(address: Address, target: NodeId, timeoutMs: number): void {
    this.#open("ping", address, target, timeoutMs);
  }

  #open(
    purpose: Exchange["purpose"],
    address: Address,
    target: NodeId | null,
    timeoutMs: number,
  ): void {
    const context = this.#context;
    if (this.#exchanges.size >= EXCHANGES_MAX && context.rules.boundsHeld) return;
    const exchange = ++this.#exchangeCount;
    this.#exchanges.set(exchange, { purpose, address, target, openedAt: context.now });
    const packet =
      target === null
        ? context.streamPacket({
            kind: "sync",
            join: purpose !== "pushPull",
            members: this.#lines(),
          })
        : context.streamPacket({ kind: "streamPing", sequence: exchange, target });
    context.emit({ kind: "openStream", exchange, to: address, packet, timeoutMs });
  }

  /** The driver answers every exchange; this only holds the bound if it ever does not. */
  #expireExchanges(): void {
    const { now, config } = this.#context;
    for (const [id, exchange] of this.#exchanges) {
      if (now - exchange.openedAt < 2 * config.streamTimeoutMs) break;
      this.#exchanges.delete(id);
    }
  }

  onRequest(connection: number, packet: SwimStreamPacket): void {
    const context = this.#context;
    const { message } = packet;
    const answer = (reply: SwimStreamPacket["message"]): void => {
      context.emit({ kind: "answerStream", connection, packet: context.streamPacket(reply) });
    };
    if (message.kind === "streamPing") {
      if (!context.isSelf(message.target)) {
        answer({ kind: "streamRefusal", code: "NOT_ME" });
        return;
      }
      answer({ kind: "streamAck", sequence: message.sequence });
      return;
    }
    if (message.kind !== "sync") return;
    this.#merge(message.members, packet.from, message.join);
    answer({ kind: "syncReply", members: this.#lines() });
  }

  onReply(id: number, packet: SwimStreamPacket): void {
    const exchange = this.#exchanges.get(id);
    if (exchange === undefined) {
      this.#context.counts.unknownReplies++;
      return;
    }
    this.#exchanges.delete(id);
    const { message } = packet;
    if (message.kind === "streamAck" && exchange.target !== null) {
      if (packet.from === exchange.target) this.onStreamAck(exchange.target);
    } else if (message.kind === "syncReply") {
      this.#lost.delete(exchange.address);
      this.#merge(message.members, packet.from, exchange.purpose === "join");
    } else if (message.kind === "streamRefusal") {
      if (exchange.target !== null) this.onStreamPingFailed(exchange.target, false);
      else this.#context.warn("JOIN_REFUSED", `${exchange.address} ${message.code}`);
    }
  }

  onFailed(id: number, refused: boolean, problem: string): void {
    const exchange = this.#exchanges.get(id);
    if (exchange === undefined) return;
    this.#exchanges.delete(id);
    if (exchange.target !== null) this.onStreamPingFailed(exchange.target, refused);
    else if (this.#context.table.liveCount === 1) {
      // Only this member sees the failure, so it is reported here.
      this.#context.alarm("JOIN_FAILED", `${exchange.address}: ${problem}`);
    }
  }

  #merge(members: readonly MemberState[], from: NodeId, join: boolean): void {
    const membership = this.#membership;
    const { rules } = this.#context;
    for (const { node, incarnation, status } of members) {
      if (status === "alive") {
        const direct = node.id === from;
        membership.alive(node, incarnation, join && direct ? "join" : "alive", direct);
      } else if (status === "left") membership.left(node.id, incarnation, node.id);
      else if (status === "suspect" || rules.syncDeadSuspects) {
        membership.suspect(node.id, incarnation, from, "sync");
      } else membership.dead(node.id, incarnation, from, "sync");
    }
  }

  #lines(): MemberState[] {
    const { self, incarnation, leaving, table } = this.#context;
    const lines: MemberState[] = [{ node: self, incarnation, status: leaving ? "left" : "alive" }];
    for (const member of table.all()) {
      lines.push({ node: member.record, incarnation: member.incarnation, status: member.status });
    }
    return lines;
  }

  /** A reaped member's address is kept a while longer: it may come back after days. (B-39) */
  remember(member: Member): void {
    this.#lost.add(member.record.address);
    for (const oldest of this.#lost) {
      if (this.#lost.size <= LOST_ADDRESSES_MAX) break;
      this.#lost.delete(oldest);
    }
  }
}

/** Larger clusters exchange whole tables less often: x1 to 32 members, x2 to 64, x3 to 128. */
function pushPullScale(memberCount: number): number {
  if (memberCount <= PUSH_PULL_SCALE_FROM) return 1;
  return Math.ceil(Math.log2(memberCount) - Math.log2(PUSH_PULL_SCALE_FROM)) + 1;
}
