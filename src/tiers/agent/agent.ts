/**
 * A bare member of a cluster: membership (and, for voters, leadership) over real sockets, with what an
 * operator needs to see it. Gates, managers and workers will be this plus their work.
 *
 *     sockets → Transports → Swim, Election → effects → Transports, disk, events
 */

import { randomBytes } from "node:crypto";
import { Alarms } from "../../core/base/alarms.ts";
import { assertNever } from "../../core/base/assert.ts";
import { errorText } from "../../core/base/error-text.ts";
import { type Address, type NodeId, nodeId } from "../../core/base/ids.ts";
import { Random } from "../../core/base/random.ts";
import { SWIM_PROFILES } from "../../core/cluster/swim/config.ts";
import { encodeCeiling } from "../../core/cluster/swim/durable-ceiling.ts";
import type { NodeRecord, SwimStreamPacket } from "../../core/cluster/swim/messages.ts";
import { Swim } from "../../core/cluster/swim/swim.ts";
import type {
  MemberChange,
  SwimEffect,
  SwimInput,
  SwimView,
} from "../../core/cluster/swim/types.ts";
import type { Background, Work } from "../../host/background.ts";
import { RefusalLog } from "../../host/control/refusal-log.ts";
import type { DurableRegion } from "../../host/durable-region.ts";
import type { FileDisk } from "../../host/file-disk.ts";
import { type Driven, Loop, type Machine } from "../../host/loop.ts";
import type { Audit, AuditCounts, AuditRequester } from "../../host/ports/audit.ts";
import type { Clock } from "../../host/ports/clock.ts";
import type { Log, LogFields, LogLevel } from "../../host/ports/log.ts";
import { warnOfExposure } from "../../host/secret-exposure.ts";
import { startTimer } from "../../host/timer.ts";
import type { Datagram } from "../../wire/datagram.ts";
import type { Hello } from "../../wire/hello.ts";
import { formatKeyId } from "../../wire/key-ring.ts";
import { CAPABILITIES, PROTOCOL } from "../../wire/version.ts";
import { Addresses } from "./addresses.ts";
import { alarmMeaning, type WarningCode } from "./alarms.ts";
import { leaderEntry, memberEntry, type Onlooker } from "./audit.ts";
import type { AgentConfig } from "./config.ts";
import type { AgentEvent, AgentStatus, KeyInfo, MemberEventName, MemberInfo } from "./events.ts";
import { type LeaderNews, Leadership } from "./leadership.ts";
import { type AgentLook, describeMembers, describeStatus } from "./report.ts";
import { type AgentState, decodeAgentState, encodeAgentState } from "./state.ts";
import { openStored, type Stored } from "./stored.ts";
import { Transports } from "./transports.ts";

interface AgentSurroundings {
  readonly clock: Clock;
  readonly log: Log;
  readonly audit: Audit;
  readonly background: Background;
  /** Of the software, for people. */
  readonly version: string;
  /** Every event, in order. */
  readonly onEvent: (event: AgentEvent) => void;
  /** The agent cannot go on: a defect, a lost disk, or another member with our name. */
  readonly onFatal: (reason: string, error: unknown) => void;
}

/** The farewell may take this long; then we go without it. A stop must end within five seconds. */
const LEAVE_MS_MAX = 4_000;
/** Requests that may wait for their answer at one time. */
const ANSWERS_MAX = 1_024;
/** How often our own health is looked at and told. */
const HEALTH_MS = 1_000;

export class Agent {
  readonly config: AgentConfig;
  readonly #around: AgentSurroundings;
  readonly #disk: FileDisk;
  readonly #region: DurableRegion;
  readonly #transports: Transports;
  readonly #loop: Loop;
  readonly #swim: Swim;
  readonly #driven: Driven<SwimInput>;
  readonly #leadership: Leadership;
  readonly #startedAt: number;
  readonly #addresses = new Addresses();
  readonly #onlooker: Onlooker;
  readonly #alarms = new Alarms<"UNREADABLE">();
  readonly #states = new Map<NodeId, AgentState>();
  readonly #answers = new Map<number, (reply: SwimStreamPacket) => void>();
  readonly #health: Work;
  #connections = 0;
  #told: AgentState | null = null;
  #onLeft: (() => void) | null = null;

  private constructor(
    config: AgentConfig,
    around: AgentSurroundings,
    transports: Transports,
    stored: Stored,
  ) {
    this.config = config;
    this.#around = around;
    this.#transports = transports;
    this.#disk = stored.disk;
    this.#region = stored.incarnation;
    this.#startedAt = around.clock.now();
    this.#onlooker = { self: config.name, addressOf: (id) => this.#addresses.get(id) };
    this.#loop = new Loop(around.clock, (error) => around.onFatal("a defect", error));
    this.#swim = new Swim(
      {
        self: recordOf(config),
        boot: around.clock.wall(),
        incarnationCeiling: stored.ceiling,
        config: SWIM_PROFILES[config.profile],
        seeds: [],
      },
      // Seeded from the platform's source of secrets: no peer can foresee whom we probe. (SEC-14)
      new Random(randomBytes(16).toString("hex")),
    );
    this.#driven = this.#loop.add<SwimInput, SwimEffect>(this.#swim, { kind: "tick" }, (effect) =>
      this.#run(effect),
    );
    this.#leadership = new Leadership(
      {
        config,
        log: around.log,
        loop: this.#loop,
        addressOf: (id) => this.#addresses.get(id),
        send: (to, packet) => transports.send(to, { protocol: "election", packet }),
        onNews: (news) => this.#onLeader(news),
        onAlarm: ({ code, from, about }) => this.#onWarning(code, from, about),
      },
      stored.vote,
    );
    this.#health = around.background.every("health", HEALTH_MS, () => this.#tellHealth());
  }

  /** Opens disk and sockets and starts the machine; rejects with a reason when one of them does. */
  static async start(config: AgentConfig, around: AgentSurroundings): Promise<Agent> {
    const stored = await openStored(config.dataDir, config.voters.length > 0);
    let agent: Agent | null = null;
    warnOfExposure(config.secretFile, around.log);
    const refusals = new RefusalLog(around.log, around.clock);
    const hello = helloOf(config, around.version);
    const transports = await Transports.open(config, hello, around.clock, {
      onDatagram: (source, datagram) => {
        if (agent !== null) agent.#onDatagram(source, datagram);
      },
      onSendFailed: (to) => {
        if (agent !== null) agent.#driven.push({ kind: "sendFailed", to });
      },
      onRequest: (packet, answer) => {
        if (agent !== null) agent.#onRequest(packet, answer);
      },
      onProblem: (host, problem) => refusals.note(host, problem),
      onUnreadable: (source, problem) => {
        if (agent !== null) agent.#onUnreadable(source, problem);
      },
      isMember: (host) => (agent === null ? false : agent.#addresses.hasHost(host)),
    });
    agent = new Agent(config, around, transports, stored);
    agent.#driven.push({ kind: "start" });
    agent.#leadership.start();
    agent.#tellHealth();
    return agent;
  }

  /** Another machine in the same loop. */
  drive<Input, Effect>(
    machine: Machine<Input, Effect>,
    tick: Input,
    run: (effect: Effect) => Promise<void> | undefined,
  ): Driven<Input> {
    return this.#loop.add(machine, tick, run);
  }

  join(seeds: readonly Address[]): void {
    this.#driven.push({ kind: "join", seeds });
  }

  /** An operator knows that a failed member will not return. */
  forceLeave(name: string, requester: AuditRequester): void {
    this.#around.audit.record({ kind: "member.removed", subject: name, requester });
    this.#driven.push({ kind: "forceLeave", id: nodeId(name) });
  }

  /** Says farewell, bounded in time, and closes everything. */
  async leave(requester: AuditRequester): Promise<void> {
    this.#around.audit.record({ kind: "node.leaving", subject: this.config.name, requester });
    await new Promise<void>((resolve) => {
      const deadline = startTimer(LEAVE_MS_MAX, resolve);
      this.#onLeft = () => {
        deadline.cancel();
        resolve();
      };
      this.#leadership.resign();
      this.#driven.push({ kind: "leave" });
    });
    await this.stop();
  }

  /** Ends without a farewell. */
  async stop(): Promise<void> {
    this.#loop.stop();
    this.#health.cancel();
    await this.#transports.close();
    await this.#disk.close();
  }

  /**
   * Reads the secrets anew: how keys are added, used and removed without a restart. Throws when they
   * cannot be used; the old ones stay then.
   */
  reloadKeys(requester: AuditRequester): readonly KeyInfo[] {
    const subject = this.config.name;
    warnOfExposure(this.config.secretFile, this.#around.log);
    try {
      this.#transports.setSecrets(this.config.readSecrets());
    } catch (error) {
      const detail = { problem: errorText(error) };
      this.#around.audit.record({ kind: "keys.refused", subject, requester, detail });
      throw error;
    }
    const keys = this.keys();
    const current = keys[0]?.id ?? "";
    const { encryption } = this.#transports.ring;
    const detail = { current, count: keys.length, encryption };
    this.#around.audit.record({ kind: "keys.reloaded", subject, requester, detail });
    this.#log("info", "keys.reloaded", detail);
    return keys;
  }

  keys(): readonly KeyInfo[] {
    const { openedBy } = this.#transports.guardCounts;
    return this.#transports.ring.keys.map(({ id }, place) => ({
      id: formatKeyId(id),
      current: place === 0,
      opened: openedBy.get(id) ?? 0,
    }));
  }

  view(): SwimView {
    return this.#swim.snapshot();
  }

  get transports(): Transports {
    return this.#transports;
  }

  get audited(): AuditCounts {
    return this.#around.audit.counts;
  }

  get lag(): Loop["lag"] {
    return this.#loop.lag;
  }

  /** Warnings and alarms of membership and election since the start, by code. */
  get alarmCounts(): ReadonlyMap<string, number> {
    const election = this.#leadership.view?.alarms ?? new Map<string, number>();
    const swim = Object.entries(this.view().counts.warnings);
    return new Map([...swim, ...election, ...this.#alarms.counts]);
  }

  /** Ourselves first. */
  members(): readonly MemberInfo[] {
    return describeMembers(this.#look());
  }

  status(): AgentStatus {
    return describeStatus(this.#look(), {
      version: this.#around.version,
      ring: this.#transports.ring,
      keys: this.keys(),
      uptimeMs: Math.round(this.#around.clock.now() - this.#startedAt),
    });
  }

  #look(): AgentLook {
    return {
      config: this.config,
      view: this.view(),
      states: this.#states,
      leadership: this.#leadership,
    };
  }

  #onDatagram(source: Address, datagram: Datagram): void {
    if (datagram.protocol === "swim") {
      this.#driven.push({ kind: "datagram", source, packet: datagram.packet });
    } else if (datagram.protocol === "election") {
      this.#leadership.onPacket(datagram.packet);
    } else {
      // A bare agent answers no probes between datacenters.
      this.#transports.counts.unsupported++;
    }
  }

  #onRequest(packet: SwimStreamPacket, answer: (reply: SwimStreamPacket) => void): void {
    const connection = ++this.#connections;
    this.#answers.set(connection, answer);
    // Most are answered within the step; some wait for the disk, and those the machine ignores age out.
    for (const oldest of this.#answers.keys()) {
      if (this.#answers.size <= ANSWERS_MAX) break;
      this.#answers.delete(oldest);
    }
    this.#driven.push({ kind: "streamRequest", connection, packet });
  }

  #run(effect: SwimEffect): Promise<void> | undefined {
    switch (effect.kind) {
      case "send":
        this.#transports.send(effect.to, { protocol: "swim", packet: effect.packet });
        return undefined;
      case "openStream":
        this.#openStream(effect);
        return undefined;
      case "answerStream":
        this.#answers.get(effect.connection)?.(effect.packet);
        this.#answers.delete(effect.connection);
        return undefined;
      case "persistIncarnation":
        return this.#region.save(encodeCeiling(effect.ceiling));
      case "memberChanged":
        this.#onChange(effect.change);
        return undefined;
      case "peerState":
        this.#onPeerState(effect.id, effect.body);
        return undefined;
      case "userEvent":
        this.#log("debug", "gossip.event", { from: effect.origin, bytes: effect.payload.length });
        return undefined;
      case "leaveDone":
        this.#onLeft?.();
        return undefined;
      case "nameLost":
        this.#log("error", "member.nameLost", { rival: effect.rival });
        this.#around.onFatal(`another live member bears our name at ${effect.rival}`, null);
        return undefined;
      case "warning":
        this.#onWarning(effect.code, null, effect.about);
        return undefined;
      default:
        return assertNever(effect);
    }
  }

  #openStream(effect: Extract<SwimEffect, { readonly kind: "openStream" }>): void {
    const { exchange, to, packet, timeoutMs } = effect;
    this.#transports.exchange(to, packet, timeoutMs, (result) => {
      if (result.ok && result.reply.name === "membership") {
        this.#driven.push({ kind: "streamReply", exchange, packet: result.reply.value });
        return;
      }
      const problem = result.ok ? result.reply.name : result.problem;
      this.#log("debug", "stream.failed", { to, problem });
      const refused = !result.ok && result.refused;
      this.#driven.push({ kind: "streamFailed", exchange, refused, problem });
    });
  }

  #onChange(change: MemberChange): void {
    const { member, from, to, why, kind } = change;
    const { id, record } = member;
    this.#addresses.set(id, record.address);
    if (kind === "failed" || kind === "leave") this.#leadership.onGone(id);
    if (kind === "forget") {
      this.#states.delete(id);
      this.#addresses.delete(id);
    }
    const level = kind === "failed" || kind === "suspect" ? "warn" : "info";
    this.#log(level, `swim.${kind}`, {
      member: id,
      address: record.address,
      from,
      to,
      incarnation: member.incarnation,
      why,
    });
    const entry = memberEntry(change, this.#onlooker);
    if (entry !== null) this.#around.audit.record(entry);
    const event = EVENT_OF[kind];
    if (event === null) return;
    this.#around.onEvent({
      event,
      member: id,
      address: record.address,
      role: record.role,
      datacenter: record.datacenter,
      from,
      to,
      incarnation: member.incarnation,
      why,
      at: new Date(this.#around.clock.wall()).toISOString(),
    });
  }

  #onPeerState(id: NodeId, body: Uint8Array): void {
    const state = decodeAgentState(body);
    if (state === null) return;
    this.#states.set(id, state);
    this.#leadership.onPeerState(id, state);
  }

  #onWarning(code: WarningCode, member: string | null, about: string): void {
    const meaning = alarmMeaning(code);
    if (meaning === null) {
      this.#log("warn", "swim.warning", { code, about });
      return;
    }
    this.#log("error", "agent.alarm", { code, member, about, meaning });
    const at = new Date(this.#around.clock.wall()).toISOString();
    this.#around.onEvent({ event: "alarm", code, member, about, at });
  }

  #onUnreadable(source: Address, problem: string): void {
    if (!this.#alarms.raise("UNREADABLE", this.#around.clock.now())) return;
    this.#onWarning("UNREADABLE", null, `from ${source}: ${problem}`);
  }

  #onLeader(news: LeaderNews): void {
    const { group, leader, term, why } = news;
    this.#around.audit.record(leaderEntry(news, this.#onlooker));
    const at = new Date(this.#around.clock.wall()).toISOString();
    this.#log("info", "election.leader", { group, leader, term, why });
    this.#around.onEvent({ event: "leader-change", member: leader, group, term, why, at });
    this.#tellHealth();
  }

  #ownState(health: number): AgentState {
    const { view, group } = this.#leadership;
    return {
      health,
      group,
      leading: view?.state === "leader",
      term: view?.term ?? 0,
      electorate: view?.electorate ?? "",
    };
  }

  /** Embedded in what we send anyway; a new version only when something changed. */
  #tellHealth(): void {
    const state = this.#ownState(this.#swim.healthScore);
    this.#leadership.onHealth(state.health);
    const { health, group, leading, term } = state;
    const told = this.#told;
    const same =
      told !== null &&
      told.health === health &&
      told.group === group &&
      told.leading === leading &&
      told.term === term;
    if (same) return;
    this.#told = state;
    this.#driven.push({ kind: "setState", body: encodeAgentState(state) });
  }

  #log(level: LogLevel, event: string, fields: LogFields): void {
    this.#around.log.event(level, event, fields);
  }
}

/** Which changes the outside hears of as events; the others are only logged. */
const EVENT_OF: Readonly<Record<MemberChange["kind"], MemberEventName | null>> = {
  join: "member-join",
  update: "member-update",
  suspect: "member-suspect",
  refute: "member-update",
  failed: "member-failed",
  leave: "member-leave",
  confirmed: null,
  forget: null,
};

function recordOf(config: AgentConfig): NodeRecord {
  return {
    id: nodeId(config.name),
    address: config.address,
    role: config.role,
    datacenter: config.datacenter,
    versionMajor: PROTOCOL.major,
    versionMinor: PROTOCOL.minor,
    meta: new Uint8Array(0),
  };
}

function helloOf(config: AgentConfig, version: string): Hello {
  return {
    cluster: config.cluster,
    environment: config.environment,
    versionMajor: PROTOCOL.major,
    versionMinor: PROTOCOL.minor,
    capabilities: CAPABILITIES,
    nodeVersion: version,
    node: config.name,
    address: config.address,
    role: config.role,
    datacenter: config.datacenter,
  };
}
