/**
 * A ledger node as a process: the pure node, its log, its peers, and whoever asks it something.
 *
 *     peers ─┐                                   ┌─► peers      one batch per peer and turn
 *     API   ─┼─► Driver ─► LedgerNode ─► effects ┼─► log        durable(n) comes back
 *     log   ─┘                                   └─► answers    to whoever asked
 *
 * Sockets are opened before the disk is touched, so that a taken port changes nothing; nobody is
 * answered before recovery has ended. (CKPT-6)
 */

import { hash, randomUUID } from "node:crypto";
import { errorText } from "../core/base/error-text.ts";
import type { NodeId } from "../core/base/ids.ts";
import { Random } from "../core/base/random.ts";
import { useSha256 } from "../core/base/sha256.ts";
import type { JobState } from "../core/ledger/job/job-state.ts";
import { LEDGER_RULES } from "../core/ledger/node/config.ts";
import type { LedgerRequest, NodeMessage } from "../core/ledger/node/messages.ts";
import { LedgerNode } from "../core/ledger/node/node.ts";
import type { LedgerEffect } from "../core/ledger/node/types.ts";
import type { WatchRequest } from "../core/ledger/node/watch.ts";
import type { Background } from "../host/background.ts";
import type { ControlServer } from "../host/control/server.ts";
import type { AuditEvent, AuditRequester, OpenAudit } from "../host/ports/audit.ts";
import type { Clock } from "../host/ports/clock.ts";
import type { Log } from "../host/ports/log.ts";
import { ApiServer } from "./api-server.ts";
import { type AuditPage, type AuditQuery, auditTrail } from "./audit.ts";
import { cancelEntry, cancelOf } from "./audit-entries.ts";
import { waitForClock } from "./clock-wait.ts";
import { type LedgerConfig, sitesOf } from "./config.ts";
import { Driver } from "./driver.ts";
import { firstStart, firstStartDone } from "./founding.ts";
import { identityOfDirectory } from "./identity.ts";
import { LeadsReport } from "./leads.ts";
import { Peers } from "./peers.ts";
import type { LedgerService, OnAnswer, OnItems, OnLeads, Watching } from "./service.ts";
import { type HostCounts, type HostStatus, hostStatus } from "./status.ts";
import { Store } from "./store.ts";

/** Records without room in the log's queue: beyond it clients are told to retry, and peers are not heard. */
const DISK_BEHIND_RECORDS = 20_000;
/** The groups this node leads find another primary, for so long, before it goes. */
const HAND_OVER_MS_MAX = 3_000;
/** Work under way may finish for so long before the node goes. */
const DRAIN_MS_MAX = 1_000;
const DRAIN_LOOK_MS = 10;

type HostEvent =
  | {
      readonly event: "leads";
      readonly leading: number;
      readonly gained: number;
      readonly lost: number;
    }
  | { readonly event: "alarm"; readonly group: string; readonly why: string }
  | { readonly event: "peer"; readonly peer: string; readonly up: boolean };

interface HostHandlers {
  readonly clock: Clock;
  readonly log: Log;
  readonly background: Background;
  /** Called when nothing stands in the way: a node that refuses to start changes nothing on its disk. */
  readonly openAudit: () => Promise<OpenAudit>;
  readonly version: string;
  readonly onEvent: (event: HostEvent) => void;
  /** The process must end: the log failed, or an invariant broke. */
  readonly onFatal: (reason: string, error: unknown) => void;
}

/** Whoever prepared the data directory and starts the process on it. */
const SYSTEM: AuditRequester = { kind: "system", name: "" };

export class LedgerHost implements LedgerService {
  readonly config: LedgerConfig;
  readonly #handlers: HostHandlers;
  readonly #waiting = new Map<number, OnAnswer>();
  readonly #watchers = new Map<number, OnItems>();
  readonly counts: HostCounts = { requests: 0, answers: 0, commits: 0, alarms: 0, shed: 0 };
  readonly #leadListeners = new Set<OnLeads>();
  #driver: Driver | null = null;
  #store: Store | null = null;
  #peers: Peers | null = null;
  #audit: OpenAudit | null = null;
  #api: ControlServer | null = null;
  #tokens = 0;
  #closing = false;
  #failed = false;

  private constructor(config: LedgerConfig, handlers: HostHandlers) {
    this.config = config;
    this.#handlers = handlers;
    const report = new LeadsReport(handlers.background, (...counts) => this.#tellLeads(...counts));
    this.onLeads((_group, _view, leads) => report.add(leads));
  }

  /** Resolves when the node has recovered and serves. Rejects with what is wrong, sockets closed. */
  static async start(config: LedgerConfig, handlers: HostHandlers): Promise<LedgerHost> {
    useSha256((message) => hash("sha256", message, "buffer"));
    const host = new LedgerHost(config, handlers);
    try {
      await host.#open();
      return host;
    } catch (error) {
      await host.#closeAll();
      throw error;
    }
  }

  get ready(): boolean {
    return this.#driver !== null && !this.#closing;
  }

  get node(): LedgerNode | null {
    return this.#driver?.node ?? null;
  }

  get background(): Background {
    return this.#handlers.background;
  }

  wall(): number {
    return this.#handlers.clock.wall();
  }

  get encryption(): string {
    return this.#peers?.encryption ?? "";
  }

  /** `onAnswer` is called once. */
  request(request: LedgerRequest, requester: AuditRequester, onAnswer: OnAnswer): void {
    const cancel = cancelOf(request);
    if (cancel === null) {
      this.#request(request, onAnswer);
      return;
    }
    this.#request(request, (answer) => {
      this.note(cancelEntry(cancel, answer, requester));
      onAnswer(answer);
    });
  }

  #request(request: LedgerRequest, onAnswer: OnAnswer): void {
    const driver = this.#driver;
    const refusal = this.#busy();
    if (driver === null || refusal !== null) {
      onAnswer({ kind: "retry", why: refusal ?? "the node is starting" });
      return;
    }
    this.counts.requests++;
    const token = ++this.#tokens;
    this.#waiting.set(token, onAnswer);
    driver.take({ kind: "request", token, request });
  }

  watch(request: WatchRequest, room: number, onItems: OnItems): Watching {
    const driver = this.#driver;
    if (driver === null || this.#closing) {
      onItems([{ kind: "refused", why: "the node is starting or going down; ask another" }]);
      return { makeRoom: () => undefined, end: () => undefined };
    }
    const token = ++this.#tokens;
    this.#watchers.set(token, onItems);
    driver.take({ kind: "watch", token, request, room });
    return {
      makeRoom: (count) => driver.take({ kind: "watchRoom", token, count }),
      end: () => {
        if (this.#watchers.delete(token)) driver.take({ kind: "watchEnd", token });
      },
    };
  }

  onLeads(listener: OnLeads): () => void {
    this.#leadListeners.add(listener);
    return () => this.#leadListeners.delete(listener);
  }

  /** A job that has left memory; null when this node does not have it either. */
  async archived(jobId: string): Promise<JobState | null> {
    return (await this.#store?.archive.read(jobId)) ?? null;
  }

  audit(query: AuditQuery): Promise<AuditPage> {
    const { node } = this;
    if (node === null || this.#store === null) throw new Error("the node is starting");
    return auditTrail(node, this.#store.archive, query);
  }

  status(): HostStatus | null {
    const [driver, store, peers, audit] = [this.#driver, this.#store, this.#peers, this.#audit];
    if (driver === null || store === null || peers === null || audit === null) return null;
    return hostStatus({
      config: this.config,
      ...{ driver, store, peers },
      counts: this.counts,
      audit: audit.counts,
      waiting: this.#waiting.size,
    });
  }

  /** Into the audit log; before it is open there is nobody who could have asked for something. */
  note(event: AuditEvent): void {
    this.#audit?.record(event);
  }

  /** Throws when the new keys cannot be used; the old ones stay then. */
  reloadKeys(requester: AuditRequester): void {
    const subject = this.config.name;
    try {
      this.#peers?.reloadKeys();
      this.note({ kind: "keys.reloaded", subject, requester });
    } catch (error) {
      const detail = { problem: errorText(error) };
      this.note({ kind: "keys.refused", subject, requester, detail });
      throw error;
    }
  }

  /** Lets others lead, what is under way finish, writes a checkpoint, ends. */
  async stop(requester: AuditRequester): Promise<void> {
    if (this.#closing) return;
    this.note({ kind: "node.leaving", subject: this.config.name, requester });
    this.#closing = true;
    this.#driver?.take({ kind: "giveUp", group: null });
    await this.#until(HAND_OVER_MS_MAX, () => (this.node?.handingOver ?? 0) === 0);
    await this.#until(DRAIN_MS_MAX, () => this.#waiting.size === 0);
    const retry = { kind: "retry", why: "the node is going down; ask another" } as const;
    for (const onAnswer of this.#waiting.values()) onAnswer(retry);
    this.#waiting.clear();
    this.#driver?.flush();
    this.#driver?.stop();
    // A node that broke an invariant is not written down.
    if (!this.#failed) await this.#store?.checkpoint();
    await this.#closeAll();
  }

  async #until(limitMs: number, isDone: () => boolean): Promise<void> {
    const until = this.#handlers.clock.now() + limitMs;
    while (!isDone() && this.#handlers.clock.now() < until) {
      await this.background.pause(DRAIN_LOOK_MS);
    }
  }

  async #open(): Promise<void> {
    const { config } = this;
    const { clock, log, background, version, onEvent } = this.#handlers;
    this.#peers = await Peers.listen(config, {
      log,
      background,
      version,
      onMessages: (...batch) => this.#onMessages(...batch),
      identityProblem: (...peer) => this.#identityProblem(...peer),
      onLink: (peer, up) => onEvent({ event: "peer", peer, up }),
    });
    this.#api = await ApiServer.listen(config.api, { host: this, log });
    const first = await firstStart(config.dataDir, config.file);
    const identity = await identityOfDirectory(config.dataDir);
    const { store, recovered } = await Store.open(config, {
      clock,
      log,
      onDurable: (count) => this.#driver?.take({ kind: "durable", count }),
      onFailed: (error) => this.#fail("the write-ahead log has failed", error),
    });
    this.#store = store;
    this.#audit = await this.#handlers.openAudit();
    const node = new LedgerNode(
      {
        self: config.name,
        sites: sitesOf(config),
        config: config.node,
        boot: randomUUID().slice(0, 13),
        rules: LEDGER_RULES,
      },
      new Random(randomUUID()),
    );
    node.recover(recovered, clock.now(), clock.wall());
    await waitForClock({
      // A stop ends every pause: then there is nothing to wait for either.
      behindMs: () => (background.stopped ? 0 : node.clockBehindMs(clock.wall())),
      pause: (ms) => background.pause(ms),
      onBehind: (behindMs) => log.event("warn", "clock.behind-own-log", { behindMs }),
    });
    node.start(clock.now(), clock.wall(), first);
    store.serve(node);
    this.#driver = new Driver(node, clock, {
      run: (effect) => this.#run(effect),
      onTurn: () => store.onTurn(),
      onDefect: (error) => this.#fail("an invariant of the ledger is broken", error),
    });
    const { replayed, tookMs } = recovered;
    log.event("info", "ledger.recovered", { groups: recovered.images.size, replayed, tookMs });
    this.#driver.flush();
    if (first !== null) {
      await store.flush();
      await firstStartDone(config.dataDir);
      const detail = { way: first, groups: node.groups.size };
      log.event("info", "ledger.first-start", detail);
      this.note({ kind: "ledger.founded", subject: config.name, requester: SYSTEM, detail });
    }
    this.#peers.start(identity);
  }

  #busy(): string | null {
    if (this.#closing) return "the node is going down; ask another";
    if ((this.#store?.waiting ?? 0) > DISK_BEHIND_RECORDS) return "the disk is behind";
    return null;
  }

  #identityProblem(peer: NodeId, identity: string): string | null {
    const problem = this.node?.refuseIdentity(peer, identity) ?? null;
    if (problem !== null) this.#driver?.flush();
    return problem;
  }

  #onMessages(from: NodeId, identity: string, messages: readonly NodeMessage[]): void {
    if ((this.#store?.waiting ?? 0) > DISK_BEHIND_RECORDS) {
      this.counts.shed++;
      return;
    }
    this.#driver?.take({ kind: "messages", from, identity, messages });
  }

  #run(effect: LedgerEffect): void {
    switch (effect.kind) {
      case "append":
        this.#store?.post(effect.type, effect.payload, effect.wall, effect.logical);
        return;
      case "send":
        this.#peers?.send(effect.to, effect.messages);
        return;
      case "answer": {
        const onAnswer = this.#waiting.get(effect.token);
        this.#waiting.delete(effect.token);
        this.counts.answers++;
        onAnswer?.(effect.answer);
        return;
      }
      case "watched":
        this.#watchers.get(effect.token)?.(effect.items);
        return;
      case "applied":
        this.counts.commits++;
        return;
      case "leads":
        for (const told of this.#leadListeners) told(effect.group, effect.view, effect.leads);
        return;
      case "archive":
        this.#store?.addToArchive(effect.jobId, effect.bytes);
        return;
      case "alarm": {
        const { group, why } = effect;
        this.counts.alarms++;
        this.#handlers.log.event("error", "ledger.alarm", { group, why });
        this.note({ kind: "ledger.alarm", subject: group, requester: this.#self, detail: { why } });
        this.#handlers.onEvent({ event: "alarm", group, why });
      }
    }
  }

  #tellLeads(gained: number, lost: number): void {
    const leading = this.node?.status().leading ?? 0;
    const detail = { leading, gained, lost };
    this.#handlers.log.event("info", "ledger.leads", detail);
    this.note({ kind: "ledger.leads", subject: this.config.name, requester: this.#self, detail });
    this.#handlers.onEvent({ event: "leads", ...detail });
  }

  #fail(reason: string, error: unknown): void {
    this.#failed = true;
    this.#api?.abandon();
    this.#handlers.onFatal(reason, error);
  }

  async #closeAll(): Promise<void> {
    this.#driver?.stop();
    await this.#api?.close();
    await this.#peers?.stop();
    await this.#store?.close();
    await this.#audit?.close();
  }

  get #self(): AuditRequester {
    return { kind: "self", name: this.config.name };
  }
}
