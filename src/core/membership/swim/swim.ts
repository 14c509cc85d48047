/**
 * Membership: SWIM with Lifeguard as one pure machine. Inputs go in with the time they happened, effects come out;
 * nothing else happens. The parts:
 *
 *     Membership  applies news about members            Prober    one probe round at a time
 *     Syncer      whole tables over streams             Confirmer members never reached yet
 *     Names       two members with one name             Suspicion, Awareness, BroadcastQueue
 *
 * The machine monitors its own lateness: a step long after its deadline means that our process stalled, so probes in
 * flight prove nothing and suspicions are extended. (WHEEL-7)
 */

import { assert, assertNever } from "../../base/assert.ts";
import type { Millis } from "../../base/brand.ts";
import { millis } from "../../base/brand.ts";
import type { Address, Incarnation, NodeId } from "../../base/ids.ts";
import { COUNTER_JUMP_MAX } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import { keyOf } from "./broadcast-queue.ts";
import { checkSwimConfig } from "./config.ts";
import { Confirmer } from "./confirmer.ts";
import { SwimContext } from "./context.ts";
import { USER_SEEN_MAX } from "./limits.ts";
import type { Member } from "./member-table.ts";
import { isLive } from "./member-table.ts";
import { Membership } from "./membership.ts";
import type { SwimDatagram, SwimPacket, Update } from "./messages.ts";
import { META_BYTES_MAX, STATE_BYTES_MAX, USER_PAYLOAD_BYTES_MAX } from "./messages.ts";
import { Names } from "./names.ts";
import { Prober } from "./prober.ts";
import type { SwimRules } from "./rules.ts";
import { SWIM_RULES } from "./rules.ts";
import { Syncer } from "./syncer.ts";
import type { MemberView, SwimEffect, SwimInput, SwimOptions, SwimView } from "./types.ts";

/** A step this late, or half a probe timeout late, means that our loop stalled. */
const LAG_MIN_MS = 100;
/** A leaving member waits at most this long for its farewell to spread. (serf's broadcast timeout) */
const LEAVE_MAX_MS = 5_000;
const REAP_EVERY_MS = 15_000;

/** Milliseconds. */
interface MemberWaits {
  readonly suspicionMs: number;
  /** Left of its passive wait. */
  readonly passiveMs: number;
  /** Before the next ping that counts as an attempt; null: it gets none any more. */
  readonly attemptMs: number | null;
}

export interface SwimSizes {
  readonly members: number;
  readonly unconfirmed: number;
  readonly queue: number;
  readonly relays: number;
  readonly greetings: number;
  readonly exchanges: number;
  readonly tombstones: number;
}

export class Swim {
  readonly #context: SwimContext;
  readonly #membership: Membership;
  readonly #prober: Prober;
  readonly #syncer: Syncer;
  readonly #confirmer: Confirmer;
  readonly #names: Names;
  /** User gossip already delivered, oldest first. */
  readonly #userSeen = new Set<string>();
  #userSequence = 0;
  #started = false;
  #gossipAt = 0;
  #reapAt = 0;
  #leaveAt = Number.POSITIVE_INFINITY;
  #deadline = Number.POSITIVE_INFINITY;

  constructor(options: SwimOptions, random: Random, rules: SwimRules = SWIM_RULES) {
    checkSwimConfig(options.config);
    assert(options.self.meta.length <= META_BYTES_MAX, "own meta fits its limit");
    const context = new SwimContext(options, rules, random);
    this.#context = context;
    this.#membership = new Membership(context);
    this.#syncer = new Syncer(context, this.#membership);
    this.#prober = new Prober(context, this.#membership, (to, target, timeoutMs) =>
      this.#syncer.pingByStream(to, target, timeoutMs),
    );
    this.#confirmer = new Confirmer(context, this.#membership, this.#prober, this.#syncer);
    this.#names = new Names(context);
    this.#syncer.onStreamAck = (target) => this.#prober.onStreamAck(target);
    this.#syncer.onStreamPingFailed = (target, refused) =>
      this.#prober.onStreamFailed(target, refused);
    this.#membership.onRival = (rival) => this.#names.dispute(rival.address);
    this.#membership.onConflict = (known, other) => this.#names.conflict(known, other);
  }

  step(input: SwimInput, now: Millis): readonly SwimEffect[] {
    const context = this.#context;
    assert(now >= context.now, "time does not run backwards");
    context.now = now;
    context.out = [];
    if (this.#started) this.#noticeLag(now - this.#deadline);
    this.#take(input);
    // News after a quiet period is due at once, not overdue since the last gossip. The machine also wakes often enough
    // to notice its own stalls: a pause that ends exactly at a deadline is still a pause.
    const beat = now + context.config.probeTimeoutMs;
    this.#deadline = Math.min(beat, Math.max(now, this.#nextDeadline()));
    return context.out;
  }

  nextDeadline(): Millis | null {
    return this.#started && Number.isFinite(this.#deadline) ? millis(this.#deadline) : null;
  }

  #take(input: SwimInput): void {
    switch (input.kind) {
      case "start":
        this.#start();
        return;
      case "tick":
        this.#tick();
        return;
      case "datagram":
        this.#onDatagram(input.packet, input.source);
        return;
      case "streamRequest":
        this.#syncer.onRequest(input.connection, input.packet);
        this.#meetSender(input.packet);
        return;
      case "streamReply":
        this.#syncer.onReply(input.exchange, input.packet);
        this.#meetSender(input.packet);
        return;
      case "streamFailed":
        this.#syncer.onFailed(input.exchange, input.refused ?? false, input.problem ?? "no answer");
        return;
      case "sendFailed":
        this.#prober.onSendFailed(input.to);
        return;
      case "join":
        this.#syncer.join(input.seeds);
        return;
      case "leave":
        this.#leave();
        return;
      case "forceLeave":
        this.#forceLeave(input.id);
        return;
      case "broadcast":
        this.#broadcastUser(input.payload);
        return;
      case "setState":
        this.#setState(input.body);
        return;
      case "setMeta":
        this.#setMeta(input.meta);
        return;
      case "lag":
        this.#sufferLag(input.lagMs);
        return;
      case "restrain":
        this.#context.restraint = input.restraint;
        this.#context.awareness.setFloor(input.restraint.timeouts);
        return;
      default:
        assertNever(input);
        return;
    }
  }

  #start(): void {
    assert(!this.#started, "a machine starts once");
    const context = this.#context;
    this.#started = true;
    context.raiseIncarnation(0);
    this.#prober.start();
    this.#syncer.start();
    this.#reapAt = context.now + REAP_EVERY_MS;
  }

  #tick(): void {
    const context = this.#context;
    this.#membership.expire();
    if (this.#prober.tick() && !context.leaving) this.#confirmer.beat();
    this.#syncer.tick();
    this.#names.tick();
    this.#gossip();
    this.#reap();
    this.#finishLeave();
  }

  #nextDeadline(): number {
    const { queue } = this.#context;
    return Math.min(
      this.#prober.nextDeadline(),
      this.#syncer.nextDeadline(),
      this.#membership.nextExpiry(),
      this.#names.nextDeadline(),
      queue.length > 0 ? this.#gossipAt : Number.POSITIVE_INFINITY,
      this.#reapAt,
      this.#leaveAt,
    );
  }

  /** Between probes, news goes to a few random members, the recently dead included. (B-39) */
  #gossip(): void {
    const context = this.#context;
    const { config, now, table, random, queue } = context;
    if (queue.length === 0 || now < this.#gossipAt) return;
    this.#gossipAt = now + config.gossipIntervalMs * context.restraint.timeouts;
    const reached = table.pick(config.gossipNodes, random, (member) => {
      if (isLive(member)) return member.confirmed;
      return member.status === "dead" && now - member.changedAt < config.gossipToTheDeadMs;
    });
    // Strangers only while we know too few others. (CONF-4)
    const missing = config.gossipNodes - reached.length;
    const strangers = (member: Member): boolean => isLive(member) && !member.confirmed;
    const targets = missing > 0 ? [...reached, ...table.pick(missing, random, strangers)] : reached;
    for (const target of targets) {
      if (queue.length === 0) return;
      context.send(target.record.address, { kind: "gossip" });
    }
  }

  #onDatagram(packet: SwimDatagram, source: Address): void {
    const context = this.#context;
    if (context.isSelf(packet.from)) {
      if (packet.fromAddress !== context.self.address) this.#names.dispute(packet.fromAddress);
      return;
    }
    for (const update of packet.updates) this.#applyUpdate(update);
    if (this.#isBehind(packet))
      context.send(source, { kind: "gossip" }, context.aliveSelf("alive"));
    this.#meetSender(packet);
    this.#heedSender(packet, source);
    this.#takeState(packet);
    const { message } = packet;
    switch (message.kind) {
      case "ping":
        this.#prober.onPing(message, packet, source);
        return;
      case "ack":
        this.#prober.onAck(message, packet);
        return;
      case "nack":
        this.#prober.onNack(message, packet);
        return;
      case "pingRequest":
        this.#prober.onPingRequest(message, source);
        return;
      case "nameQuery":
        this.#names.onQuery(message, source);
        return;
      case "nameAnswer":
        this.#names.onAnswer(message, packet);
        return;
      case "gossip":
        return;
      default:
        assertNever(message);
        return;
    }
  }

  /** The sender accuses us of what we refuted long ago: it has missed the answer, so it gets it again. */
  #isBehind(packet: SwimDatagram): boolean {
    const { self, incarnation, leaving } = this.#context;
    if (leaving) return false;
    return packet.updates.some((update) => {
      const accusation =
        update.kind === "suspect" || update.kind === "dead" || update.kind === "left";
      if (!accusation || update.id !== self.id) return false;
      return update.from === packet.from && update.incarnation < incarnation;
    });
  }

  #applyUpdate(update: Update): void {
    if (update.kind === "user") this.#onUser(update);
    else this.#membership.apply(update, "gossip");
  }

  /** The choke point of every receive path: a direct message from a member confirms it. (CONF-7, CONF-8) */
  #meetSender(packet: SwimPacket): void {
    const context = this.#context;
    if (context.isSelf(packet.from)) return;
    const sender = context.table.get(packet.from);
    if (sender === undefined) {
      this.#membership.welcomeAgain(packet.from);
      this.#syncer.meet(packet.fromAddress);
      return;
    }
    if (sender.confirmed || sender.record.address !== packet.fromAddress) return;
    context.table.confirm(sender);
    context.peers.reached(sender.confirmAttempts > 0);
    context.changed("confirmed", sender, sender.status, "direct contact");
  }

  #heedSender({ from, fromAddress, incarnation }: SwimDatagram, source: Address): void {
    const sender = this.#context.table.get(from);
    if (sender === undefined || source !== fromAddress) return;
    if (sender.record.address === source) this.#membership.heedOwnWord(sender, incarnation);
  }

  /** Embedded heartbeats of a role; only newer ones are passed on. (EMB-5, CLOCK-5) */
  #takeState(packet: SwimDatagram): void {
    const { state, from: id } = packet;
    const context = this.#context;
    const sender = context.table.get(id);
    if (state === null || sender === undefined) return;
    const { boot, version, body } = state;
    const newer =
      boot > sender.stateBoot || (boot === sender.stateBoot && version > sender.stateVersion);
    if (!newer && context.rules.statesVersioned) {
      context.counts.staleStates++;
      return;
    }
    if (boot === sender.stateBoot && version - sender.stateVersion > COUNTER_JUMP_MAX) {
      context.alarm("STATE_JUMP", `${id} from ${sender.stateVersion} to ${version}`);
      return;
    }
    sender.stateBoot = boot;
    sender.stateVersion = version;
    context.emit({ kind: "peerState", id, boot, version, body });
  }

  #onUser(update: Extract<Update, { kind: "user" }>): void {
    const context = this.#context;
    const key = keyOf(update);
    if (context.isSelf(update.origin) || this.#userSeen.has(key)) return;
    this.#userSeen.add(key);
    for (const oldest of this.#userSeen) {
      if (this.#userSeen.size <= USER_SEEN_MAX) break;
      this.#userSeen.delete(oldest);
    }
    context.emit({ kind: "userEvent", origin: update.origin, payload: update.payload });
    context.broadcast(update);
  }

  #broadcastUser(payload: Uint8Array): void {
    assert(payload.length <= USER_PAYLOAD_BYTES_MAX, "a user payload fits its limit");
    const context = this.#context;
    this.#userSequence++;
    const { boot } = context.options;
    const sequence = this.#userSequence;
    context.broadcast({ kind: "user", origin: context.self.id, boot, sequence, payload });
  }

  #setState(body: Uint8Array): void {
    const context = this.#context;
    // A role's heartbeat grows with its work; one that grew too large must not stop the member. (EMB-7)
    if (body.length > STATE_BYTES_MAX) context.alarm("STATE_CUT", `${body.length} bytes`);
    const version = (context.state?.version ?? 0) + 1;
    context.state = { boot: context.options.boot, version, body: body.slice(0, STATE_BYTES_MAX) };
  }

  #setMeta(meta: Uint8Array): void {
    assert(meta.length <= META_BYTES_MAX, "meta fits its limit");
    const context = this.#context;
    context.self = { ...context.self, meta };
    context.raiseIncarnation(0);
    context.broadcast(context.aliveSelf("alive"));
  }

  #leave(): void {
    const context = this.#context;
    if (context.leaving) return;
    context.leaving = true;
    this.#leaveAt = context.now + LEAVE_MAX_MS;
    const { incarnation } = context;
    const { id } = context.self;
    context.broadcast({ kind: "left", id, incarnation, from: id });
    this.#finishLeave();
  }

  /** Finishes when the farewell has been sent as often as any news, or no member is left to receive it. */
  #finishLeave(): void {
    const context = this.#context;
    if (!context.leaving || this.#leaveAt === Number.POSITIVE_INFINITY) return;
    const isSent = !context.queue.has(context.self.id) || context.table.liveCount === 1;
    if (!isSent && context.now < this.#leaveAt) return;
    this.#leaveAt = Number.POSITIVE_INFINITY;
    context.emit({ kind: "leaveDone" });
  }

  /** An operator declares that a failed member will not return. A live one refutes. (B-52d) */
  #forceLeave(id: NodeId): void {
    const member = this.#context.table.get(id);
    if (member === undefined || member.status !== "dead") return;
    this.#membership.left(id, member.incarnation, this.#context.self.id);
  }

  #reap(): void {
    const { now, table, config } = this.#context;
    if (now < this.#reapAt) return;
    this.#reapAt = now + REAP_EVERY_MS;
    for (const member of [...table.all()]) {
      if (isLive(member) || now - member.changedAt < config.deadReapMs) continue;
      if (member.status === "dead") this.#syncer.remember(member);
      this.#membership.forget(member, "reaped");
    }
  }

  #noticeLag(lateMs: number): void {
    const { config, rules } = this.#context;
    if (!rules.lagDiscounted) return;
    if (lateMs > Math.max(LAG_MIN_MS, config.probeTimeoutMs / 2)) this.#sufferLag(lateMs);
  }

  #sufferLag(lagMs: number): void {
    const context = this.#context;
    if (context.config.lifeguard) {
      context.awareness.apply(lagMs > context.config.probeIntervalMs ? 2 : 1);
    }
    context.warn("LOOP_LAG", String(Math.round(lagMs)));
    for (const member of context.suspects) member.suspicion?.postpone(lagMs);
    // Refutations may still wait to be read, beside confirmations: allow time to catch up.
    context.judgeFrom = context.now + context.config.probeTimeoutMs;
    this.#prober.abandon();
  }

  /** Cheap accessors for drivers and checkers; `snapshot` copies everything. */
  get healthScore(): number {
    return this.#context.awareness.score;
  }

  get incarnation(): Incarnation {
    return this.#context.incarnation;
  }

  /** Entry of one member, without a copy; callers must not keep it. */
  peek(id: NodeId): Readonly<Member> | undefined {
    return this.#context.table.get(id);
  }

  /** View of one member. */
  look(id: NodeId): MemberView | null {
    const member = this.#context.table.get(id);
    return member === undefined ? null : this.#context.viewOf(member);
  }

  /** Longest duration of a suspicion of this member, and the next attempt for one that was never reached. */
  waits(id: NodeId): MemberWaits | null {
    const member = this.#context.table.get(id);
    if (member === undefined) return null;
    const { maxMs } = this.#membership.boundsFor(member);
    return { suspicionMs: maxMs, ...this.#confirmer.waits(member) };
  }

  get liveCount(): number {
    return this.#context.table.liveCount;
  }

  /** Sizes of everything that is bounded. (M6) */
  sizes(): SwimSizes {
    const { table, queue } = this.#context;
    return {
      members: table.size,
      unconfirmed: table.unconfirmedCount,
      queue: queue.length,
      relays: this.#prober.relayCount,
      greetings: this.#prober.greetingCount,
      exchanges: this.#syncer.exchangeCount,
      tombstones: this.#membership.tombstoneCount,
    };
  }

  snapshot(): SwimView {
    const context = this.#context;
    const members = [];
    for (const member of context.table.all()) members.push(context.viewOf(member));
    return {
      self: context.self,
      incarnation: context.incarnation,
      members,
      healthScore: context.awareness.score,
      coordinate: context.estimator.coordinate,
      leaving: context.leaving,
      counts: {
        ...context.counts,
        refused: {},
        warnings: Object.fromEntries(context.alarms.counts),
        queueLength: context.queue.length,
        queueDropped: context.queue.dropped,
      },
      peers: context.peers,
    };
  }
}
