/**
 * One member of a cluster as one pure state machine: membership, election, discovery, sealing of datagrams, the
 * durable records, and events for observers. Production and the simulator drive this
 * object; sockets, files and timers around it contain no rules.
 *
 *     bytes ─▶ datagrams ─▶ Swim ─────▶ barrier ─▶ datagrams, exchanges, events
 *                       └─▶ Election ─▶ barrier ─▶ datagrams, news of leaders
 *     names, probes ─▶ discovery ─▶ join
 *
 * Effects of one machine become inputs of the next in the same step, one after the other, never
 * nested. Each machine's effects stay in its own order, and wait for its own record only (see the barrier).
 */

import type { AuditRequester } from "../../../host/ports/audit.ts";
import { ADMISSION_LIMITS, Admission } from "../../../wire/admission.ts";
import { formatKeyId, type KeyRing } from "../../../wire/key-ring.ts";
import type { StreamEnvelope } from "../../../wire/registry.ts";
import { Alarms } from "../../base/alarms.ts";
import { assert, assertNever } from "../../base/assert.ts";
import { type Millis, millis } from "../../base/brand.ts";
import type { Address, Incarnation, NodeId } from "../../base/ids.ts";
import type { Election } from "../../membership/election/election.ts";
import type { DurableVote, ElectionInput } from "../../membership/election/types.ts";
import { encodeCeiling } from "../../membership/swim/durable-ceiling.ts";
import { Swim } from "../../membership/swim/swim.ts";
import type { SwimEffect, SwimInput } from "../../membership/swim/types.ts";
import { type ExchangeResult, Exchanges } from "../link/exchanges.ts";
import { NOT_UNDERSTOOD, refusalOf } from "../link/refusal.ts";
import type { LinkEffect } from "../link/types.ts";
import { MemberDatagrams } from "./member-datagrams.ts";
import { MemberDiscovery } from "./member-discovery.ts";
import { MemberLeadership } from "./member-leadership.ts";
import { MemberOutput } from "./member-output.ts";
import { MemberRecords } from "./member-records.ts";
import { Refusals } from "./member-refusals.ts";
import { MemberRestraint } from "./member-restraint.ts";
import { MemberRoster } from "./member-roster.ts";
import { encodeMemberState, type MemberState, StateTeller } from "./member-state.ts";
import {
  MEMBER_RULES,
  type MemberCommand,
  type MemberEffect,
  type MemberInput,
  type MemberOptions,
  type MemberRules,
  type MemberSurroundings,
  type MemberWatch,
} from "./member-types.ts";

/** Time limit of a leave; a stop must complete within five seconds. */
const LEAVE_MS_MAX = 4_000;
const NEVER = Number.POSITIVE_INFINITY;

/** Input of an inner machine, caused by another one. */
type Inner =
  | { readonly machine: "swim"; readonly input: SwimInput }
  | { readonly machine: "election"; readonly input: ElectionInput };

export class MemberProcess {
  readonly #options: MemberOptions;
  readonly #rules: MemberRules;
  readonly #watch: MemberWatch | null;
  readonly #around: MemberSurroundings;
  readonly #datagrams: MemberDatagrams;
  readonly #exchanges: Exchanges;
  readonly #records: MemberRecords;
  readonly #roster: MemberRoster;
  readonly #leadership: MemberLeadership;
  readonly #out = new MemberOutput();
  readonly #refusals = new Refusals((fields) => this.#out.log("warn", "stream.refused", fields));
  readonly #alarms = new Alarms<"UNREADABLE">();
  readonly #teller = new StateTeller();
  readonly #restraint = new MemberRestraint(this.#out);
  #swim: Swim | null = null;
  #discovery: MemberDiscovery | null = null;
  #phase: "new" | "opening" | "running" | "leaving" | "over" = "new";
  readonly #later: Inner[] = [];
  #now: Millis = millis(0);
  #wall = 0;
  #score = 0;
  #leaveAt = NEVER;
  #unsupported = 0;

  constructor(options: MemberOptions, around: MemberSurroundings) {
    this.#options = options;
    this.#around = around;
    this.#rules = around.rules ?? MEMBER_RULES;
    this.#watch = around.watch ?? null;
    const { self, electorate } = options;
    this.#roster = new MemberRoster(self.id, this.#out);
    const { observer } = this.#roster;
    this.#leadership = new MemberLeadership({
      ...{ self, electorate, observer, rules: this.#rules, watch: this.#watch, out: this.#out },
      send: (to, packet) => {
        const address = this.#roster.addresses.get(to);
        // An unknown voter cannot be asked, but still counts against the majority.
        if (address === undefined) return;
        this.#datagrams.send(address, { protocol: "election", packet }, this.#now);
      },
      later: (input) => this.#later.push({ machine: "election", input }),
    });
    this.#datagrams = new MemberDatagrams(options.ring, around.entropy, {
      transmit: (to, bytes) => this.#out.push({ kind: "datagram", to, bytes }),
      onUnreadable: (source, problem) => {
        if (!this.#alarms.raise("UNREADABLE", this.#now)) return;
        this.#out.warn("UNREADABLE", null, `from ${source}: ${problem}`);
      },
    });
    this.#exchanges = this.#newExchanges();
    this.#records = new MemberRecords({
      rules: this.#rules.barrier,
      votes: electorate !== null,
      runSwim: (effect) => this.#runSwim(effect),
      runElection: (effect) => this.#leadership.run(effect),
      ask: (effect) => this.#out.push(effect),
      onOpened: ({ ceiling, vote }) => this.#begin(ceiling, vote),
      onUnusable: (region, detail) => {
        this.#phase = "over";
        this.#out.push({ kind: "unusable", region, detail });
      },
      onBroken: (problem) => this.#end(`cannot keep its records on disk: ${problem}`),
    });
  }

  #newExchanges(): Exchanges {
    const { hello, ring, self } = this.#options;
    const { entropy, compressor } = this.#around;
    const admission = new Admission(ADMISSION_LIMITS[self.role]);
    const emit = (effect: LinkEffect): void => this.#out.push(effect);
    return new Exchanges(
      { hello, ring, entropy, compressor, admission, emit },
      {
        onExchanged: (exchange, to, result) => this.#onExchanged(exchange, to, result),
        onProbed: (probe, answered) =>
          this.#discovery?.onProbed(probe, answered, this.#now, this.#wall),
        onRequest: (request, message) => this.#onRequest(request, message),
        onProblem: (host, problem) => this.#refusals.note(host, problem, this.#now),
      },
    );
  }

  /** Never throws on data from peers, and never waits. */
  step(input: MemberInput, now: Millis, wall: number): readonly MemberEffect[] {
    this.#now = now;
    this.#wall = wall;
    if (this.#phase !== "over") {
      this.#take(input);
      this.#settle();
    }
    return this.#out.take();
  }

  nextDeadline(): Millis | null {
    if (this.#phase === "over") return null;
    const next = Math.min(
      this.#swim?.nextDeadline() ?? NEVER,
      this.election?.nextDeadline() ?? NEVER,
      this.#discovery?.nextDeadline() ?? NEVER,
      this.#exchanges.nextDeadline() ?? NEVER,
      this.#teller.dueAt,
      this.#restraint.dueAt,
      this.#leaveAt,
    );
    return next === NEVER ? null : millis(next);
  }

  /** Null until the records are read. */
  get swim(): Swim | null {
    return this.#swim;
  }

  /** Null for a member that does not vote, and until the records are read. */
  get election(): Election | null {
    return this.#leadership.election;
  }

  get leadership(): Pick<MemberLeadership, "group" | "isLeader"> {
    return this.#leadership;
  }

  get ring(): KeyRing {
    return this.#datagrams.ring;
  }

  get exchanges(): Pick<Exchanges, "counts"> {
    return this.#exchanges;
  }

  get datagrams(): Pick<MemberDatagrams, "counts" | "guardCounts"> {
    return this.#datagrams;
  }

  /** Well-formed messages, on either transport, of a kind that a bare member does not serve. */
  get unsupported(): number {
    return this.#unsupported;
  }

  get restraint(): Pick<MemberRestraint, "view"> {
    return this.#restraint;
  }

  /** Last reported states of members. */
  get states(): ReadonlyMap<NodeId, MemberState> {
    return this.#roster.states;
  }

  /** Warnings and alarms of membership and election since the start, by code. */
  get alarmCounts(): ReadonlyMap<string, number> {
    const election = this.election?.snapshot().alarms ?? new Map<string, number>();
    const swim = Object.entries(this.#swim?.snapshot().counts.warnings ?? {});
    return new Map([...swim, ...election, ...this.#alarms.counts]);
  }

  /** Whether a member runs on this host. */
  hasHost(host: string): boolean {
    return this.#roster.addresses.hasHost(host);
  }

  // ---- inputs ---------------------------------------------------------------------------------

  #take(input: MemberInput): void {
    switch (input.kind) {
      case "datagram":
        this.#onDatagram(input.source, input.bytes);
        return;
      case "tick":
        this.#tick();
        return;
      case "start":
        assert(this.#phase === "new", "a process starts once");
        this.#phase = "opening";
        this.#records.open();
        return;
      case "region":
        this.#records.onResult(input.region, input.result);
        return;
      case "sendFailed":
        this.#stepSwim(input);
        return;
      case "opened":
      case "dialFailed":
      case "bytes":
      case "drained":
      case "closed":
        this.#exchanges.take(input, this.#now);
        return;
      case "resolveFailed":
        this.#out.log("warn", "discovery.unresolved", { name: input.name, problem: input.problem });
        this.#discovery?.onAnswer(input, this.#now);
        return;
      case "resolved":
        this.#discovery?.onAnswer(input, this.#now);
        return;
      default:
        this.#obey(input);
    }
  }

  #obey(command: MemberCommand): void {
    switch (command.kind) {
      case "join": {
        const detail = { addresses: command.addresses.join(" ") };
        this.#out.recordRequest("node.joining", this.#options.self.id, command.requester, detail);
        this.#stepSwim({ kind: "join", seeds: command.addresses });
        return;
      }
      case "leave":
        this.#leave(command.requester);
        return;
      case "forceLeave":
        this.#out.recordRequest("member.removed", command.id, command.requester);
        this.#stepSwim({ kind: "forceLeave", id: command.id });
        return;
      case "setKeys":
        this.#setKeys(command.ring, command.requester);
        return;
      case "resign":
        this.#stepElection(command);
        return;
      case "broadcast":
        this.#stepSwim(command);
        return;
      default:
        assertNever(command);
    }
  }

  #tick(): void {
    const now = this.#now;
    const leader = this.election?.leader ?? null;
    const restraint = this.#restraint.tick(this.#swim?.healthScore ?? 0, leader, now);
    if (restraint !== null) this.#stepSwim({ kind: "restrain", restraint });
    if ((this.#swim?.nextDeadline() ?? NEVER) <= now) this.#stepSwim({ kind: "tick" });
    if ((this.election?.nextDeadline() ?? NEVER) <= now) this.#stepElection({ kind: "tick" });
    this.#discovery?.tick(now, this.#wall);
    this.#exchanges.tick(now);
    if (now >= this.#leaveAt) this.#onLeft();
  }

  /** Processes all consequences of an input, and reports changes of our own state. */
  #settle(): void {
    this.#drain();
    if (this.#roster.takeChanged()) {
      this.#discovery?.onPeers(this.#roster.addresses.live(), this.#now);
      this.#drain();
    }
    if (this.#phase !== "running") return;
    this.#reportState();
    this.#drain();
  }

  #drain(): void {
    for (let inner = this.#later.shift(); inner !== undefined; inner = this.#later.shift()) {
      if (inner.machine === "swim") this.#stepSwim(inner.input);
      else this.#stepElection(inner.input);
    }
  }

  #onDatagram(source: Address, bytes: Uint8Array): void {
    if (this.#swim === null) return;
    const datagram = this.#datagrams.receive(source, bytes, this.#now);
    if (datagram === null) return;
    if (datagram.protocol === "swim") {
      this.#stepSwim({ kind: "datagram", source, packet: datagram.packet });
    } else if (datagram.protocol === "election") {
      // The election ignores senders outside the configured electorate. (AD-3)
      const { group, from, electorate, message } = datagram.packet;
      if (group !== this.#leadership.group) return;
      this.#stepElection({ kind: "message", from, electorate, message });
    } else {
      // A bare member answers no probes between datacenters.
      this.#unsupported++;
    }
  }

  #onExchanged(exchange: number, to: Address, result: ExchangeResult): void {
    if (result.ok && result.reply.name === "membership") {
      this.#stepSwim({ kind: "streamReply", exchange, packet: result.reply.value });
      return;
    }
    const problem = result.ok ? result.reply.name : result.problem;
    const refused = !result.ok && result.refused;
    this.#out.log("debug", "stream.failed", { to, problem });
    this.#stepSwim({ kind: "streamFailed", exchange, refused, problem });
  }

  #onRequest(request: number, message: StreamEnvelope): void {
    if (message.name === "membership") {
      this.#stepSwim({ kind: "streamRequest", connection: request, packet: message.value });
      return;
    }
    this.#unsupported++;
    const text = `a bare agent does not take ${message.name}`;
    this.#exchanges.answer(request, refusalOf(0, NOT_UNDERSTOOD, text), this.#now);
  }

  // ---- start and end ---------------------------------------------------------------------------

  #begin(incarnationCeiling: Incarnation, durable: DurableVote): void {
    this.#phase = "running";
    const { self, swim: config, discovery } = this.#options;
    const { random } = this.#around;
    this.#swim = new Swim(
      { self, boot: this.#wall, incarnationCeiling, config, seeds: discovery.seeds },
      random.fork("swim"),
      this.#rules.swim,
    );
    this.#leadership.begin(durable, this.#records.vote, random.fork("election"));
    this.#discovery = new MemberDiscovery(
      { ...discovery, self: self.address },
      this.#wall,
      random.fork("discovery"),
      {
        emit: (effect) => this.#out.push(effect),
        probe: (probe, to, timeoutMs) => this.#exchanges.probe(probe, to, timeoutMs, this.#now),
        join: (address) =>
          this.#later.push({ machine: "swim", input: { kind: "join", seeds: [address] } }),
        onState: (from, to) => this.#out.log("info", "discovery.state", { from, to }),
      },
    );
    this.#out.push({ kind: "started" });
    this.#stepSwim({ kind: "start" });
    this.#stepElection({ kind: "start" });
    this.#discovery.start(this.#now);
    this.#restraint.start(this.#now);
  }

  #end(reason: string): void {
    this.#phase = "over";
    this.#out.push({ kind: "fatal", reason });
  }

  // ---- membership -----------------------------------------------------------------------------

  #stepSwim(input: SwimInput): void {
    const swim = this.#swim;
    if (swim === null || this.#phase === "over") return;
    const effects = swim.step(input, this.#now);
    this.#watch?.onSwim(input, effects);
    for (const effect of effects) this.#records.swim.push(effect);
    const score = this.#restraint.health(swim.healthScore);
    if (score === this.#score) return;
    this.#score = score;
    this.#later.push({ machine: "election", input: { kind: "health", score, alive: true } });
  }

  #runSwim(effect: SwimEffect): void {
    this.#watch?.onSwimDone(effect);
    switch (effect.kind) {
      case "send":
        this.#datagrams.send(effect.to, { protocol: "swim", packet: effect.packet }, this.#now);
        return;
      case "openStream": {
        const { exchange, to, packet: value, timeoutMs } = effect;
        const request = { name: "membership", correlation: 0, value } as const;
        this.#exchanges.ask(exchange, to, request, timeoutMs, this.#now);
        return;
      }
      case "answerStream": {
        const { connection, packet: value } = effect;
        const reply = { name: "membership", correlation: 0, value } as const;
        this.#exchanges.answer(connection, reply, this.#now);
        return;
      }
      case "persistIncarnation":
        this.#records.swim.persist(encodeCeiling(effect.ceiling));
        return;
      case "memberChanged": {
        const { kind, member } = effect.change;
        this.#roster.onChange(effect.change);
        if (kind === "failed" || kind === "leave") this.#leadership.onGone(member.id);
        return;
      }
      case "peerState": {
        const state = this.#roster.onState(effect.id, effect.body);
        if (state !== null) this.#leadership.onPeerState(effect.id, state);
        return;
      }
      case "userEvent":
        this.#out.log("debug", "gossip.event", { from: effect.origin });
        return;
      case "leaveDone":
        this.#onLeft();
        return;
      case "nameLost":
        this.#out.log("error", "member.nameLost", { rival: effect.rival });
        this.#end(`another live member bears our name at ${effect.rival}`);
        return;
      case "warning":
        this.#out.warn(effect.code, null, effect.about);
        return;
      default:
        assertNever(effect);
    }
  }

  /** Piggybacks our state on outgoing packets. */
  #reportState(): void {
    const { group, digest: electorate, election } = this.#leadership;
    const [health, term] = [this.#score, election?.term ?? 0];
    const leading = election?.state === "leader";
    if (!this.#teller.isDue({ health, leading, term }, this.#now)) return;
    const state = { health, group, leading, term, electorate };
    this.#teller.onSent(state, this.#now);
    this.#stepSwim({ kind: "setState", body: encodeMemberState(state) });
  }

  #leave(requester: AuditRequester): void {
    if (this.#phase !== "running") return;
    this.#phase = "leaving";
    this.#out.recordRequest("node.leaving", this.#options.self.id, requester);
    this.#discovery?.save(this.#wall);
    this.#discovery = null;
    this.#teller.stop();
    this.#leaveAt = this.#now + LEAVE_MS_MAX;
    // Lets followers elect at once instead of waiting for the lease.
    this.#stepElection({ kind: "drain" });
    this.#stepSwim({ kind: "leave" });
  }

  #onLeft(): void {
    if (this.#leaveAt === NEVER) return;
    this.#leaveAt = NEVER;
    this.#out.push({ kind: "left" });
  }

  #stepElection(input: ElectionInput): void {
    if (this.#phase !== "over") this.#leadership.step(input, this.#now);
  }

  #setKeys(ring: KeyRing, requester: AuditRequester): void {
    this.#datagrams.setRing(ring);
    this.#exchanges.useRing(ring);
    const { keys, encryption } = ring;
    const detail = { current: formatKeyId(ring.current.id), count: keys.length, encryption };
    this.#out.recordRequest("keys.reloaded", this.#options.self.id, requester, detail);
    this.#out.log("info", "keys.reloaded", detail);
  }
}
