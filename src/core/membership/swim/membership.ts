/**
 * Applies news about members. One total order decides: a higher incarnation wins; at the same incarnation, DEAD and
 * LEFT beat SUSPECT, which beats ALIVE. Only a member itself raises its incarnation.
 *
 *     unknown --alive--> alive --suspect--> suspect --timeout, dead--> dead --reaped--> forgotten
 *                          ^                   |                         |
 *                          +---alive, higher---+-------alive, higher-----+       left: as dead, by choice
 *
 * News about ourselves is answered, not believed: we refute above the accusation. (SWIM 4.2)
 *
 * News that raises an incarnation by more than COUNTER_JUMP_MAX is rejected by every member, including the one it is
 * about: an attacker that could make a member count to the end of its numbers, or make others believe that it did,
 * would silence it. A member that has a wrong number all the same (it learned of the member from a liar) is corrected
 * by the member's own next message.
 */

import type { Incarnation, NodeId } from "../../base/ids.ts";
import { COUNTER_JUMP_MAX, incarnation as toIncarnation } from "../../base/ids.ts";
import { LOAD_MULTIPLIER_MAX, latencyMultiplier } from "../vivaldi/quality.ts";
import type { SwimContext } from "./context.ts";
import { MEMBERS_MAX, TOMBSTONES_MAX } from "./limits.ts";
import type { Member } from "./member-table.ts";
import { isLive, sameRecord } from "./member-table.ts";
import type { NodeRecord, Update } from "./messages.ts";
import type { SuspicionBounds } from "./suspicion.ts";
import { Suspicion, suspicionBounds } from "./suspicion.ts";

/** A stranger has this long to answer before a newcomer may take its place. */
const STRANGER_MS_MIN = 5_000;
/**
 * An evicted member may be real: two members that a flood pushed out of each other's tables learn of each other only
 * from third ones, so it may be learned again soon. (seed 88)
 */
const ROOM_TOMBSTONE_MS = 2 * STRANGER_MS_MIN;
/** Distance and load never stretch a suspicion beyond this; one that lasts longer by itself is not stretched. */
const STRETCHED_MS_MAX = 120_000;

/** Source of news; deaths learned from others are counted separately. (GOSS-5) */
type Via = "own" | "gossip" | "sync";

interface Tombstone {
  readonly incarnation: Incarnation;
  readonly until: number;
}

export class Membership {
  readonly #context: SwimContext;
  /** Members removed unconfirmed: the same incarnation is not learned again for a while. (AD-35.32) */
  readonly #tombstones = new Map<NodeId, Tombstone>();
  /** Set by the machine: another member uses our name. False: already known, report nothing more. */
  onRival: (rival: NodeRecord) => boolean = () => true;
  onConflict: (known: Member, other: NodeRecord) => void = () => {};

  constructor(context: SwimContext) {
    this.#context = context;
  }

  get tombstoneCount(): number {
    return this.#tombstones.size;
  }

  apply(update: Exclude<Update, { kind: "user" }>, via: Via): void {
    switch (update.kind) {
      case "join":
      case "alive":
        this.alive(update.node, update.incarnation, update.kind);
        return;
      case "suspect":
        this.suspect(update.id, update.incarnation, update.from, via);
        return;
      case "dead":
        this.dead(update.id, update.incarnation, update.from, via);
        return;
      case "left":
        this.left(update.id, update.incarnation, update.from);
        return;
    }
  }

  /** `direct`: the news comes from the member itself, so that it will be confirmed at once. */
  alive(node: NodeRecord, incarnation: Incarnation, kind: "join" | "alive", direct = false): void {
    const { table, rules, self } = this.#context;
    if (node.id === self.id) {
      this.#aliveSelf(node, incarnation);
      return;
    }
    const known = table.get(node.id);
    if (node.versionMajor !== self.versionMajor) {
      if (known === undefined) this.#context.warn("VERSION_REFUSED", node.id);
      return;
    }
    if (known === undefined) {
      this.#newcomer(node, incarnation, kind, direct);
      return;
    }
    if (this.#jumps(known.id, known.incarnation, incarnation)) return;
    const older = rules.equalAliveLoses
      ? incarnation <= known.incarnation
      : incarnation < known.incarnation;
    if (node.address !== known.record.address && !this.#mayMove(known, older)) {
      if (!older || isLive(known)) this.onConflict(known, node);
      return;
    }
    if (older) return;
    this.#revive(known, node, incarnation, kind);
  }

  /** A left member may come back from anywhere, a dead one after the reclaim time. (B-35) */
  #mayMove(known: Member, older: boolean): boolean {
    const { config, now } = this.#context;
    if (older) return false;
    if (known.status === "left") return true;
    if (known.status !== "dead" || config.deadReclaimMs === 0) return false;
    return now - known.changedAt >= config.deadReclaimMs;
  }

  #revive(known: Member, node: NodeRecord, incarnation: Incarnation, kind: "join" | "alive"): void {
    const context = this.#context;
    const was = known.status;
    const changedRecord = !sameRecord(known.record, node);
    known.incarnation = incarnation;
    context.table.setRecord(known, node);
    if (was !== "alive" && (was !== "suspect" || context.rules.refutationClears)) {
      context.table.setStatus(known, "alive", context.now);
      context.suspects.delete(known);
    }
    if (was === "dead" || was === "left") context.changed("join", known, was, "higher incarnation");
    else if (was === "suspect") context.changed("refute", known, was, "higher incarnation");
    if (changedRecord && (was === "alive" || was === "suspect")) {
      context.changed("update", known, was, "record changed");
    }
    context.broadcast({ kind, node, incarnation });
  }

  #newcomer(
    node: NodeRecord,
    incarnation: Incarnation,
    kind: "join" | "alive",
    direct: boolean,
  ): void {
    const context = this.#context;
    const { table, now, rules } = context;
    const tombstone = this.#tombstones.get(node.id);
    if (tombstone !== undefined && tombstone.until > now) {
      if (incarnation <= tombstone.incarnation) return;
      this.#tombstones.delete(node.id);
    }
    // A flood of names fills the space for strangers, but never keeps out members that contact us directly.
    const crowded =
      table.unconfirmedCount >= context.config.unconfirmedMax && !direct && !this.#makeRoom();
    const full = table.size >= MEMBERS_MAX || crowded;
    if (full && rules.boundsHeld) {
      context.warn("MEMBERS_FULL", node.id);
      return;
    }
    const member: Member = {
      id: node.id,
      record: node,
      status: "alive",
      incarnation,
      changedAt: now,
      suspicion: null,
      confirmed: false,
      learnedAt: now,
      greetings: 0,
      confirmAttempts: 0,
      confirmAt: 0,
      warned: false,
      rttSamples: [],
      rttMs: null,
      coordinate: null,
      stateBoot: 0,
      stateVersion: 0,
    };
    table.add(member, context.random);
    context.changed("join", member, null, "learned");
    context.broadcast({ kind, node, incarnation });
  }

  /** Under a flood the oldest stranger that was greeted in vain goes, so that real newcomers get their turn. */
  #makeRoom(): boolean {
    const { table, now } = this.#context;
    for (const member of table.all()) {
      if (member.confirmed || member.greetings === 0) continue;
      if (now - member.learnedAt < STRANGER_MS_MIN) continue;
      this.forget(member, "made room for newcomers", ROOM_TOMBSTONE_MS);
      return true;
    }
    return false;
  }

  #aliveSelf(node: NodeRecord, incarnation: Incarnation): void {
    const context = this.#context;
    if (incarnation < context.incarnation) return;
    if (this.#jumps(node.id, context.incarnation, incarnation)) return;
    // The rival may be an older self of ours, so we refute once; two live rivals must not race for ever.
    if (node.address !== context.self.address && !this.onRival(node)) return;
    if (incarnation === context.incarnation && sameRecord(node, context.self)) return;
    // Our own record wins, above theirs. (B-30)
    this.refute(incarnation);
  }

  suspect(id: NodeId, incarnation: Incarnation, from: NodeId, via: Via): void {
    const context = this.#context;
    const { rules } = context;
    // Ignore self-accusations; memberlist's merges produced them and polluted confirmations. (1.5.9)
    if (from === id) return;
    if (context.isSelf(id)) {
      this.#accusedSelf(incarnation);
      return;
    }
    const known = context.table.get(id);
    if (known === undefined || this.#jumps(id, known.incarnation, incarnation)) return;
    if (incarnation < known.incarnation && rules.staleAccusationIgnored) return;
    if (!known.confirmed && rules.unconfirmedProtected) return;
    if (known.status === "dead" || known.status === "left") {
      this.#raise(known, incarnation);
      return;
    }
    if (known.status === "suspect") {
      this.#confirmSuspicion(known, incarnation, from);
      return;
    }
    this.#raise(known, incarnation);
    context.table.setStatus(known, "suspect", context.now);
    known.suspicion = new Suspicion(this.#suspectedFor(known), from, context.now);
    context.suspects.add(known);
    context.counts.suspicions++;
    const why = via === "own" ? "probe failed" : `by ${from}`;
    context.changed("suspect", known, "alive", why, from);
    context.broadcast({ kind: "suspect", id, incarnation: known.incarnation, from });
  }

  #confirmSuspicion(known: Member, incarnation: Incarnation, from: NodeId): void {
    const { rules } = this.#context;
    this.#raise(known, incarnation);
    const accuser = rules.accusersDistinct ? from : (`${from}#${this.#context.now}` as NodeId);
    if (known.suspicion?.confirm(accuser) !== true) return;
    this.#context.broadcast({
      kind: "suspect",
      id: known.id,
      incarnation: known.incarnation,
      from,
    });
  }

  /**
   * M2: what we know of a member's incarnation only rises, also by evidence of its failure. (B-36)
   */
  #raise(known: Member, incarnation: Incarnation): void {
    if (incarnation <= known.incarnation) {
      if (!this.#context.rules.staleAccusationIgnored) known.incarnation = incarnation;
      return;
    }
    if (!isLive(known) && !this.#context.rules.deadEvidenceRaises) return;
    known.incarnation = incarnation;
  }

  /** Lifeguard's bounds, stretched for a distant peer and for our own bad health. (AD-35.41, AD-35.43) */
  boundsFor(member: Member): SuspicionBounds & { readonly latency: number; readonly load: number } {
    const { config, table, awareness, estimator } = this.#context;
    const bounds = suspicionBounds(config, table.liveCount);
    if (!config.lifeguard)
      return { ...bounds, confirmationsWanted: 0, maxMs: bounds.minMs, latency: 1, load: 1 };
    const load = Math.min(LOAD_MULTIPLIER_MAX[member.record.role], awareness.load);
    const estimate =
      member.rttMs ??
      (member.coordinate === null ? 0 : (estimator.estimateRttMs(member.coordinate) ?? 0));
    // The profile already allows for round trips up to a fifth of its probe timeout.
    const ordinaryMs = Math.max(10, config.probeTimeoutMs / 5);
    const distance =
      member.record.role === "worker" ? 1 : latencyMultiplier((10 * estimate) / ordinaryMs);
    const stretched = (ms: number): number =>
      Math.max(ms, Math.min(STRETCHED_MS_MAX, ms * load * distance));
    const [minMs, maxMs] = [stretched(bounds.minMs), stretched(bounds.maxMs)];
    return { ...bounds, minMs, maxMs, latency: distance, load };
  }

  #suspectedFor(member: Member): SuspicionBounds {
    const { latency, load, ...bounds } = this.boundsFor(member);
    this.#context.peers.suspected(member.record.role, bounds.maxMs, latency, load);
    return bounds;
  }

  dead(id: NodeId, incarnation: Incarnation, from: NodeId, via: Via): void {
    const context = this.#context;
    if (context.isSelf(id)) {
      this.#accusedSelf(incarnation);
      return;
    }
    const known = context.table.get(id);
    if (known === undefined || this.#jumps(id, known.incarnation, incarnation)) return;
    if (incarnation < known.incarnation && context.rules.staleAccusationIgnored) return;
    if (!known.confirmed && context.rules.unconfirmedProtected) {
      this.forget(known, "gossip says dead, never reached");
      return;
    }
    if (!isLive(known)) {
      this.#raise(known, incarnation);
      return;
    }
    const was = known.status;
    this.#raise(known, incarnation);
    context.table.setStatus(known, "dead", context.now);
    context.suspects.delete(known);
    context.counts.deaths++;
    if (via !== "own") context.counts.gossipInformedDeaths++;
    const why = via === "own" ? "suspicion expired" : `by ${from}`;
    context.changed("failed", known, was, why, from);
    context.broadcast({ kind: "dead", id, incarnation: known.incarnation, from });
  }

  left(id: NodeId, incarnation: Incarnation, from: NodeId): void {
    const context = this.#context;
    if (context.isSelf(id)) {
      this.#accusedSelf(incarnation);
      return;
    }
    const known = context.table.get(id);
    if (known === undefined || known.status === "left") return;
    if (this.#jumps(id, known.incarnation, incarnation)) return;
    if (incarnation < known.incarnation && context.rules.staleAccusationIgnored) return;
    const was = known.status;
    known.incarnation = incarnation;
    context.table.setStatus(known, "left", context.now);
    context.suspects.delete(known);
    context.changed("leave", known, was, from === id ? "left" : `forced out by ${from}`, from);
    context.broadcast({ kind: "left", id, incarnation, from });
  }

  /** 34: stay alive, above the accusation. 37: a member that is leaving lets itself be buried. */
  #accusedSelf(incarnation: Incarnation): void {
    if (incarnation < this.#context.incarnation) return;
    if (this.#jumps(this.#context.self.id, this.#context.incarnation, incarnation)) return;
    if (this.#context.leaving && this.#context.rules.leaveIsFinal) return;
    this.refute(incarnation);
  }

  #jumps(id: NodeId, known: Incarnation, claimed: Incarnation): boolean {
    if (claimed - known <= COUNTER_JUMP_MAX) return false;
    this.#context.alarm("INCARNATION_JUMP", `${id} from ${known} to ${claimed}`);
    return true;
  }

  /**
   * A member reports its incarnation from its own address. If it differs from ours by more than counting can explain,
   * ours came from another source, and the member is right.
   */
  heedOwnWord(known: Member, claimed: Incarnation): void {
    if (Math.abs(claimed - known.incarnation) <= COUNTER_JUMP_MAX) return;
    this.#context.alarm("INCARNATION_JUMP", `${known.id} from ${known.incarnation} to ${claimed}`);
    known.incarnation = claimed;
  }

  refute(accusation: Incarnation): void {
    const context = this.#context;
    if (context.leaving && context.rules.leaveIsFinal) return;
    const above = context.rules.refuteAboveAccusation ? accusation : toIncarnation(0);
    context.raiseIncarnation(above);
    context.counts.refutations++;
    if (context.config.lifeguard) context.awareness.apply(1);
    if (context.rules.refutationTold) context.broadcast(context.aliveSelf("alive"));
  }

  /** Turns expired suspicions into deaths. */
  expire(): void {
    const context = this.#context;
    if (context.now < context.judgeFrom) return;
    for (const member of [...context.suspects]) {
      const { suspicion } = member;
      if (suspicion === null || member.status !== "suspect") {
        context.suspects.delete(member);
        continue;
      }
      if (suspicion.deadline > context.now && context.rules.suspicionWaits) continue;
      this.dead(member.id, member.incarnation, context.self.id, "own");
    }
  }

  nextExpiry(): number {
    let next = Number.POSITIVE_INFINITY;
    for (const member of this.#context.suspects) {
      const at = member.suspicion?.deadline ?? Number.POSITIVE_INFINITY;
      if (at < next) next = at;
    }
    return next === Number.POSITIVE_INFINITY ? next : Math.max(next, this.#context.judgeFrom);
  }

  /** Out of the table; an unconfirmed one is not learned again for a while. */
  forget(member: Member, why: string, tombstoneMs = 360_000): void {
    const context = this.#context;
    const was = member.status;
    context.table.remove(member);
    context.suspects.delete(member);
    context.queue.forget(member.id);
    if (!member.confirmed) {
      const { incarnation } = member;
      this.#tombstones.set(member.id, { incarnation, until: context.now + tombstoneMs });
      for (const [id, tombstone] of this.#tombstones) {
        if (this.#tombstones.size <= TOMBSTONES_MAX && tombstone.until > context.now) break;
        this.#tombstones.delete(id);
      }
    }
    context.changed("forget", member, was, why, context.self.id);
  }

  /** A removed peer that contacts us itself is welcome at once. (AD-35.32) */
  welcomeAgain(id: NodeId): void {
    this.#tombstones.delete(id);
  }
}
