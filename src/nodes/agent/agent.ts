/**
 * A bare member of a cluster as a process: executes the effects of the pure member machine on sockets, files and DNS,
 * and feeds the results back. Contains no rules.
 *
 *     sockets, disk, DNS, commands → MemberProcess → sockets, disk, log, events, audit
 */

import { randomBytes } from "node:crypto";
import { isIP } from "node:net";
import { assert, assertNever } from "../../core/base/assert.ts";
import { errorText } from "../../core/base/error-text.ts";
import { type Address, nodeId } from "../../core/base/ids.ts";
import { Random } from "../../core/base/random.ts";
import { MemberProcess } from "../../core/cluster/node/member-process.ts";
import type { MemberEffect, MemberInput } from "../../core/cluster/node/member-types.ts";
import { BOOTSTRAP_DEFAULTS } from "../../core/membership/discovery/bootstrap.ts";
import type { SwimView } from "../../core/membership/swim/types.ts";
import type { Background } from "../../host/background.ts";
import { deflate } from "../../host/deflate.ts";
import { resolveName } from "../../host/dns.ts";
import { FileDisk } from "../../host/file-disk.ts";
import { type Driven, Loop } from "../../host/loop.ts";
import type { Audit, AuditCounts, AuditRequester } from "../../host/ports/audit.ts";
import type { Clock } from "../../host/ports/clock.ts";
import type { Log } from "../../host/ports/log.ts";
import { warnOfExposure } from "../../host/secret-exposure.ts";
import { StreamDriver } from "../../host/stream-driver.ts";
import { parseAddress } from "../../wire/address.ts";
import { formatKeyId } from "../../wire/key-ring.ts";
import type { AgentConfig } from "./config.ts";
import type { AgentEvent, AgentStatus, KeyInfo, MemberInfo } from "./events.ts";
import { FormerPeers } from "./former-peers.ts";
import { memberOptionsOf, ringOf } from "./identity.ts";
import { describeMembers, describeStatus } from "./report.ts";
import { openSockets, type Sockets } from "./sockets.ts";
import { carryOut, unusable } from "./stored.ts";

interface AgentSurroundings {
  readonly clock: Clock;
  readonly log: Log;
  readonly audit: Audit;
  readonly background: Background;
  /** Version of the software, for people. */
  readonly version: string;
  /** Every event, in order. */
  readonly onEvent: (event: AgentEvent) => void;
  /** The agent cannot go on: a defect, a lost disk, or another member with our name. */
  readonly onFatal: (reason: string, error: unknown) => void;
}

interface SocketCounts {
  /** Packets that did not leave because too many waited for the kernel. */
  readonly datagramsDropped: number;
  /** Connections closed for want of a place. */
  readonly connectionsRefused: number;
}

/** A join address given by the operator cannot be used; one sentence. */
export class JoinError extends Error {
  override readonly name = "JoinError";
}

export class Agent {
  readonly config: AgentConfig;
  readonly process: MemberProcess;
  readonly #sockets: Sockets;
  readonly #streams: StreamDriver;
  readonly #around: AgentSurroundings;
  readonly #disk: FileDisk;
  readonly #formerPeers: FormerPeers;
  readonly #loop: Loop;
  readonly #driven: Driven<MemberInput>;
  readonly #startedAt: number;
  #starting: { readonly resolve: () => void; readonly reject: (error: Error) => void } | null =
    null;
  #onLeft: () => void = () => {};

  private constructor(
    config: AgentConfig,
    around: AgentSurroundings,
    of: {
      readonly process: MemberProcess;
      readonly sockets: Sockets;
      readonly formerPeers: FormerPeers;
    },
  ) {
    this.config = config;
    this.#around = around;
    this.process = of.process;
    this.#sockets = of.sockets;
    this.#formerPeers = of.formerPeers;
    this.#disk = new FileDisk(config.dataDir);
    this.#startedAt = around.clock.now();
    this.#loop = new Loop(around.clock, (error) => around.onFatal("a defect", error));
    this.#driven = this.#loop.add<MemberInput, MemberEffect>(
      of.process,
      { kind: "tick" },
      (effect) => this.#run(effect),
    );
    const push = (input: MemberInput): void => this.#driven.push(input);
    const { udp, tcp } = of.sockets;
    this.#streams = new StreamDriver(tcp, push);
    udp.onReceive((source, bytes) => push({ kind: "datagram", source, bytes }));
    udp.onSendFailed((to) => push({ kind: "sendFailed", to }));
  }

  /** Opens sockets, reads the records and starts; rejects with a reason when one of them cannot be used. */
  static async start(config: AgentConfig, around: AgentSurroundings): Promise<Agent> {
    warnOfExposure(config.secretFile, around.log);
    const formerPeers = new FormerPeers(config.dataDir, around.log);
    const options = memberOptionsOf(config, around.version, await formerPeers.read());
    const process = new MemberProcess(options, {
      // Seeded from the platform's source of secrets: no peer can foresee whom we probe. (SEC-14)
      random: new Random(randomBytes(16).toString("hex")),
      entropy: randomBytes,
      compressor: deflate,
    });
    const sockets = await openSockets(config, (host) => process.hasHost(host));
    const agent = new Agent(config, around, { process, sockets, formerPeers });
    try {
      await new Promise<void>((resolve, reject) => {
        agent.#starting = { resolve, reject };
        agent.#driven.push({ kind: "start" });
      });
    } catch (error) {
      await agent.stop();
      throw error;
    }
    agent.#starting = null;
    return agent;
  }

  /** An operator names addresses to join now. Rejects with a sentence when one of them means nothing. */
  async join(texts: readonly string[], requester: AuditRequester): Promise<readonly Address[]> {
    const meant = await Promise.all(texts.map((text) => this.#meaningOf(text)));
    const addresses = meant.flat();
    this.#driven.push({ kind: "join", addresses, requester });
    return addresses;
  }

  async #meaningOf(text: string): Promise<readonly Address[]> {
    const { bind } = this.config;
    // Members are called by names, and reached at addresses: one is easily given for the other.
    const member = this.members().find(({ name }) => name === text);
    if (member !== undefined) {
      throw new JoinError(`"${text}" is the name of a member; its address is ${member.address}`);
    }
    const parsed = parseAddress(text, bind.port);
    if (!parsed.ok) throw new JoinError(parsed.problem);
    if (isIP(parsed.host) !== 0) return [parsed.address];
    const { dnsTimeoutMs } = BOOTSTRAP_DEFAULTS;
    const answer = await resolveName(text, bind.port, dnsTimeoutMs).catch((error: unknown) => {
      const problem = errorText(error);
      throw new JoinError(`"${text}" is no address, and no name that DNS knows: ${problem}`);
    });
    return answer.addresses;
  }

  /** An operator knows that a failed member will not return. */
  forceLeave(name: string, requester: AuditRequester): void {
    this.#driven.push({ kind: "forceLeave", id: nodeId(name), requester });
  }

  /** Sends a farewell within a time limit, and closes everything. */
  async leave(requester: AuditRequester): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#onLeft = resolve;
      this.#driven.push({ kind: "leave", requester });
    });
    await this.stop();
  }

  /** Ends without a farewell. */
  async stop(): Promise<void> {
    this.#loop.stop();
    await Promise.all([this.#sockets.udp.close(), this.#sockets.tcp.close()]);
    await this.#formerPeers.settled();
    await this.#disk.close();
  }

  /**
   * Reloads the secrets: how keys are added, used and removed without a restart. Throws if they are unusable and keeps
   * the old ones.
   */
  reloadKeys(requester: AuditRequester): readonly KeyInfo[] {
    warnOfExposure(this.config.secretFile, this.#around.log);
    try {
      this.#driven.push({ kind: "setKeys", ring: ringOf(this.config), requester });
    } catch (error) {
      const detail = { problem: errorText(error) };
      const subject = this.config.name;
      this.#around.audit.record({ kind: "keys.refused", subject, requester, detail });
      throw error;
    }
    return this.keys();
  }

  keys(): readonly KeyInfo[] {
    const { openedBy } = this.process.datagrams.guardCounts;
    return this.process.ring.keys.map(({ id }, place) => ({
      id: formatKeyId(id),
      current: place === 0,
      opened: openedBy.get(id) ?? 0,
    }));
  }

  view(): SwimView {
    const view = this.process.swim?.snapshot();
    assert(view !== undefined, "an agent is looked at after its start");
    return view;
  }

  get wall(): number {
    return this.#around.clock.wall();
  }

  get socketCounts(): SocketCounts {
    const { udp, tcp } = this.#sockets;
    return { datagramsDropped: udp.dropped, connectionsRefused: tcp.counts.refused };
  }

  get audited(): AuditCounts {
    return this.#around.audit.counts;
  }

  get lag(): Loop["lag"] {
    return this.#loop.lag;
  }

  /** Ourselves first. */
  members(): readonly MemberInfo[] {
    return describeMembers(this);
  }

  status(): AgentStatus {
    return describeStatus(this, {
      version: this.#around.version,
      uptimeMs: Math.round(this.#around.clock.now() - this.#startedAt),
    });
  }

  #run(effect: MemberEffect): void {
    const { log, audit, background } = this.#around;
    switch (effect.kind) {
      case "datagram":
        this.#sockets.udp.send(effect.to, effect.bytes);
        return;
      case "dial":
      case "write":
      case "prove":
      case "end":
      case "destroy":
        this.#streams.run(effect);
        return;
      case "readRegion":
      case "writeRegion":
      case "syncRegion": {
        const { region } = effect;
        carryOut(this.#disk, effect, (result) =>
          this.#driven.push({ kind: "region", region, result }),
        );
        return;
      }
      case "resolve":
        background.run(`resolve ${effect.name}`, () =>
          this.#resolve(effect.name, effect.timeoutMs),
        );
        return;
      case "savePeers":
        this.#formerPeers.save(effect.peers);
        return;
      case "log":
        log.event(effect.level, effect.event, effect.fields);
        return;
      case "audit":
        audit.record(effect.entry);
        return;
      case "event":
        this.#tell(effect.event);
        return;
      default:
        this.#turn(effect);
    }
  }

  /** Start, end and failure of the process. */
  #turn(effect: Extract<MemberEffect, { kind: "started" | "left" | "unusable" | "fatal" }>): void {
    switch (effect.kind) {
      case "started":
        this.#starting?.resolve();
        return;
      case "left":
        this.#onLeft();
        return;
      case "unusable":
        this.#starting?.reject(unusable(this.#disk, effect.region, effect.detail));
        return;
      case "fatal":
        if (this.#starting === null) this.#around.onFatal(effect.reason, null);
        else this.#starting.reject(new Error(effect.reason));
        return;
      default:
        assertNever(effect);
    }
  }

  #tell(event: Extract<MemberEffect, { kind: "event" }>["event"]): void {
    const at = new Date(this.#around.clock.wall()).toISOString();
    this.#around.onEvent({ ...event, at });
  }

  async #resolve(name: string, timeoutMs: number): Promise<void> {
    try {
      const { addresses, ttlMs } = await resolveName(name, this.config.bind.port, timeoutMs);
      this.#driven.push({ kind: "resolved", name, addresses, ttlMs });
    } catch (error) {
      this.#driven.push({ kind: "resolveFailed", name, problem: errorText(error) });
    }
  }
}
