/**
 * A ledger node as a process: the pure node, its log, its peers and its clients.
 *
 *     network, requests, log ─► Driver ─► LedgerMachine ─► effects ─► network, answers, log
 *
 * Sockets are opened before the disk is touched, so that a port in use changes nothing; no request is answered before
 * recovery has finished. (CKPT-6)
 */

import { hash, randomUUID } from "node:crypto";
import { assertNever } from "../core/base/assert.ts";
import { errorText } from "../core/base/error-text.ts";
import { Random } from "../core/base/random.ts";
import { useSha256 } from "../core/base/sha256.ts";
import type { AboveEffect, AboveInput } from "../core/cluster/node/above.ts";
import type { GateProcessEffect, GateProcessInput } from "../core/cluster/node/gate-process.ts";
import { LedgerMachine } from "../core/cluster/node/ledger-machine.ts";
import type { ProcessEffect } from "../core/cluster/node/types.ts";
import type { GroupId } from "../core/ledger/group/messages.ts";
import type { JobId } from "../core/ledger/job/job-id.ts";
import type { GroupKind } from "../core/ledger/node/application.ts";
import { LEDGER_RULES } from "../core/ledger/node/config.ts";
import type { LedgerAnswer, LedgerRequest } from "../core/ledger/node/messages.ts";
import type { LedgerNode } from "../core/ledger/node/node.ts";
import type { WatchRequest } from "../core/ledger/node/watch.ts";
import type { StoreEvent } from "../core/ledger/store/types.ts";
import type { Background } from "../host/background.ts";
import type { Metric } from "../host/control/prometheus.ts";
import type { ControlServer } from "../host/control/server.ts";
import type { AuditEvent, AuditRequester, OpenAudit } from "../host/ports/audit.ts";
import type { Clock } from "../host/ports/clock.ts";
import type { Log } from "../host/ports/log.ts";
import type { TcpPort } from "../host/tcp.ts";
import { ApiServer } from "./api-server.ts";
import { type AuditPage, type AuditQuery, auditOfJob, auditTrail } from "./audit.ts";
import { cancelEntry, cancelOf, steeringEntry } from "./audit-entries.ts";
import { aheadWarning, behindProblem } from "./clock-texts.ts";
import { keepTokenOf, type LedgerConfig, sitesOf } from "./config.ts";
import { type DrivenMachine, Driver, type HostEffect } from "./driver.ts";
import { firstStart, firstStartDone } from "./founding.ts";
import { identityOfDirectory } from "./identity.ts";
import { listen, peersOptions, readRing } from "./network.ts";
import type { RedactSpec } from "./redaction.ts";
import type { DebugViews, LedgerService, OnAnswer, OnItems, OnLeads, Watching } from "./service.ts";
import { type HostStatus, hostStatus, logFillOf } from "./status.ts";
import { Store, storeOptions } from "./store.ts";

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
  /** Called once all checks have passed: a node that refuses to start changes nothing on its disk. */
  readonly openAudit: () => Promise<OpenAudit>;
  readonly version: string;
  /** Kinds of groups registered by the embedding program. */
  readonly kinds?: readonly GroupKind[];
  /** Extracts what makes a job the same under one key; default: its whole description. */
  readonly identityOf?: (spec: Uint8Array) => Uint8Array;
  /** Redacts descriptions shown over the interface; default: shown in full. */
  readonly redactSpec?: RedactSpec;
  /** Application on the node in the same process. */
  readonly above?: Above;
  readonly onEvent: (event: HostEvent) => void;
  /** The process must end: the log failed, or an invariant broke. */
  readonly onFatal: (reason: string, error: unknown) => void;
}

/** A machine that has the ledger's inside; see `ManagerProcess` and `GateProcess`. */
interface Above {
  readonly compose: (ledger: LedgerMachine) => DrivenMachine;
  readonly run: (effect: OwnEffect) => void;
  /** Metrics in addition to those of the node. */
  readonly metrics: () => readonly Metric[];
  /** Views of `GET /v1/debug/NAME`, by name. */
  readonly views?: DebugViews;
  /** Whether an operator has drained it: it keeps running but accepts no more work. */
  readonly isDraining?: () => boolean;
  /** Why it should get no work; null: nothing is wrong. */
  readonly problem?: () => string | null;
}

type OwnEffect = AboveEffect | Extract<GateProcessEffect, { kind: "toDatacenter" | "report" }>;
type OwnInput = AboveInput | Extract<GateProcessInput, { kind: "ofDatacenter" | "report" }>;

type StartStep = Extract<ProcessEffect, { kind: "recovered" | "serving" }>;

/** Callbacks for the steps of the start. */
interface Starting {
  readonly onStep: (step: StartStep) => void;
  readonly reject: (error: Error) => void;
}

/** Requester of actions taken by the process itself at its start. */
const SYSTEM: AuditRequester = { kind: "system", name: "" };

export class LedgerHost implements LedgerService {
  readonly config: LedgerConfig;
  readonly #handlers: HostHandlers;
  readonly #waiting = new Map<number, OnAnswer>();
  readonly #watchers = new Map<number, OnItems>();
  readonly #leadListeners = new Set<OnLeads>();
  #network: TcpPort | null = null;
  #driver: Driver | null = null;
  #machine: LedgerMachine | null = null;
  #store: Store | null = null;
  #audit: OpenAudit | null = null;
  #api: ControlServer | null = null;
  #tokens = 0;
  #started = false;
  #closing = false;
  #failed = false;
  #starting: Starting | null = null;
  #onLeft: (leading: number) => void = () => undefined;

  private constructor(config: LedgerConfig, handlers: HostHandlers) {
    this.config = config;
    this.#handlers = handlers;
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
    return this.#started && !this.#closing;
  }

  get node(): LedgerNode | null {
    return this.#started ? (this.#machine?.node ?? null) : null;
  }

  get background(): Background {
    return this.#handlers.background;
  }

  wall(): number {
    return this.#handlers.clock.wall();
  }

  get encryption(): string {
    return this.#machine?.encryption ?? "";
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
    const token = ++this.#tokens;
    this.#waiting.set(token, onAnswer);
    this.#driver?.take({ kind: "request", token, request });
  }

  watch(request: WatchRequest, room: number, onItems: OnItems): Watching {
    const token = ++this.#tokens;
    this.#watchers.set(token, onItems);
    this.#driver?.take({ kind: "watch", token, request, room });
    return {
      makeRoom: (count) => this.#driver?.take({ kind: "watchRoom", token, count }),
      end: () => {
        if (this.#watchers.delete(token)) this.#driver?.take({ kind: "watchEnd", token });
      },
    };
  }

  onLeads(listener: OnLeads): () => void {
    this.#leadListeners.add(listener);
    return () => this.#leadListeners.delete(listener);
  }

  audit(query: AuditQuery): Promise<AuditPage> {
    const { node } = this;
    if (node === null || this.#store === null) throw new Error("the node is starting");
    const { jobId } = query;
    const isHere = jobId === null || node.groups.has(jobId as GroupId) || node.archived.has(jobId);
    return isHere
      ? auditTrail(node, this.#store.archive, query)
      : this.#auditElsewhere(jobId, query);
  }

  /** Asks the replicas of a job that this node does not replicate. */
  #auditElsewhere(jobId: string, query: AuditQuery): Promise<AuditPage> {
    const level = { level: "EVENTUAL", minSeq: -1, staleMs: 0 } as const;
    return new Promise((resolve, reject) => {
      this.#request({ kind: "read", jobId: jobId as JobId, ...level }, (answer) => {
        if (answer.kind === "job") resolve(auditOfJob(answer.state, answer.archived, query));
        else if (answer.kind === "notFound") resolve({ events: [], truncated: false });
        else reject(new Error("why" in answer ? answer.why : answer.kind));
      });
    });
  }

  status(): HostStatus | null {
    const [driver, machine, audit] = [this.#driver, this.#machine, this.#audit];
    if (!this.#started || driver === null || machine === null || audit === null) return null;
    return hostStatus({ config: this.config, driver, machine, audit: audit.counts });
  }

  get metricsAbove(): readonly Metric[] {
    return this.#handlers.above?.metrics() ?? [];
  }

  get redactSpec(): RedactSpec {
    return this.#handlers.redactSpec ?? ((spec) => spec);
  }

  get isDraining(): boolean {
    return this.#handlers.above?.isDraining?.() ?? false;
  }

  get problem(): string | null {
    return (
      behindProblem(this.#machine?.clockBehindMs ?? 0) ?? this.#handlers.above?.problem?.() ?? null
    );
  }

  get clockWarning(): string | null {
    return aheadWarning(this.#machine?.clockAhead ?? null);
  }

  get viewsAbove(): DebugViews {
    return this.#handlers.above?.views ?? {};
  }

  /** How full the queue of the log is, 0 to 1. (G-20) */
  get logFill(): number {
    return this.#machine === null ? 0 : logFillOf(this.#machine);
  }

  /** Writes to the audit log; before it is open no request can have been made. */
  note(event: AuditEvent): void {
    this.#audit?.record(event);
  }

  /** Passes an input to the application on the node. */
  tell(input: OwnInput): void {
    this.#driver?.take(input);
  }

  /** Throws if the new keys are unusable, and keeps the old ones. */
  reloadKeys(requester: AuditRequester): void {
    const subject = this.config.name;
    try {
      this.#driver?.take({ kind: "keys", ring: readRing(this.config, this.#handlers.log) });
      this.note({ kind: "keys.reloaded", subject, requester });
    } catch (error) {
      const detail = { problem: errorText(error) };
      this.note({ kind: "keys.refused", subject, requester, detail });
      throw error;
    }
  }

  /**
   * Hands leadership over, lets work in progress finish, writes a checkpoint, stops. Returns the number of groups
   * without another leader.
   */
  async stop(requester: AuditRequester): Promise<{ readonly leading: number }> {
    let leading = 0;
    if (this.#closing) return { leading };
    this.note({ kind: "node.leaving", subject: this.config.name, requester });
    this.#closing = true;
    // A node that broke an invariant is not written down.
    if (this.#started && !this.#failed) {
      const left = new Promise<number>((resolve) => {
        this.#onLeft = resolve;
      });
      this.#driver?.take({ kind: "leave" });
      leading = await left;
    }
    await this.#closeAll();
    return { leading };
  }

  async #open(): Promise<void> {
    const { config } = this;
    const { clock, log } = this.#handlers;
    this.#network = await listen(config);
    const { driver, machine } = this.#drive(this.#network);
    this.#api = await ApiServer.listen(config.api, { host: this, log });
    const first = await firstStart(config.dataDir, config);
    const identity = await identityOfDirectory(config.dataDir);
    const openedAt = clock.now();
    this.#store = await Store.prepare(config, machine.store, log);
    const { groups, replayed } = await this.#awaited("recovered", () => {
      driver.take({ kind: "open", first, identity });
    });
    const tookMs = Math.round(clock.now() - openedAt);
    log.event("info", "ledger.recovered", { groups, replayed, tookMs });
    keepTokenOf(config.dataDir, config.api);
    this.#audit = await this.#handlers.openAudit();
    await this.#awaited("serving", () => driver.take({ kind: "start" }));
    this.#started = true;
  }

  /** Starts a step of the start and waits for its end. Rejects when the store fails. */
  #awaited<Kind extends StartStep["kind"]>(
    kind: Kind,
    begin: () => void,
  ): Promise<Extract<StartStep, { kind: Kind }>> {
    return new Promise((resolve, reject) => {
      const onStep = (step: StartStep): void => {
        if (isOfKind(step, kind)) resolve(step);
      };
      this.#starting = { onStep, reject };
      begin();
    });
  }

  #drive(network: TcpPort): { readonly driver: Driver; readonly machine: LedgerMachine } {
    const { config } = this;
    const { above, clock, identityOf, log, version } = this.#handlers;
    const node = {
      self: config.name,
      sites: sitesOf(config),
      config: config.node,
      boot: randomUUID().slice(0, 13),
      rules: LEDGER_RULES,
      kinds: this.#handlers.kinds ?? [],
      ...(identityOf === undefined ? {} : { identityOf }),
    };
    const peers = peersOptions(config, readRing(config, log), version);
    const store = storeOptions(config);
    const machine = new LedgerMachine({ node, peers, store }, new Random(randomUUID()));
    const driver = new Driver(above?.compose(machine) ?? machine, clock, network, {
      run: (effect) => this.#run(effect),
      runFile: (effect, done) => this.#store?.run(effect, done),
      onDefect: (error) => this.#fail("an invariant of the ledger is broken", error),
    });
    this.#driver = driver;
    this.#machine = machine;
    return { driver, machine };
  }

  #onAnswer(token: number, answer: LedgerAnswer): void {
    const onAnswer = this.#waiting.get(token);
    this.#waiting.delete(token);
    onAnswer?.(answer);
  }

  #run(effect: HostEffect): void {
    switch (effect.kind) {
      case "answer":
        this.#onAnswer(effect.token, effect.answer);
        return;
      case "watched":
        this.#watchers.get(effect.token)?.(effect.items);
        return;
      case "leads":
        for (const notify of this.#leadListeners) notify(effect.group, effect.view, effect.leads);
        return;
      case "store":
        this.#onStore(effect.event);
        return;
      case "recovered":
      case "serving":
        this.#starting?.onStep(effect);
        return;
      case "firstStart":
        this.background.run("note the first start", () => this.#firstStarted(effect.groups));
        return;
      case "log":
        this.#handlers.log.event(effect.level, effect.event, effect.fields);
        return;
      case "alarm": {
        const { group, why } = effect;
        this.note({ kind: "ledger.alarm", subject: group, requester: this.#self, detail: { why } });
        this.#handlers.onEvent({ event: "alarm", group, why });
        return;
      }
      case "leading":
        this.#onLeading(effect);
        return;
      case "peer":
        this.#handlers.onEvent({ event: "peer", peer: effect.peer, up: effect.up });
        return;
      case "left":
        this.#onLeft(effect.leading);
        return;
      case "outdated":
        this.#fail(effect.problem, null);
        return;
      case "steered":
        this.note(steeringEntry(effect));
        return;
      case "keepBlob":
      case "readBlob":
      case "blobGet":
      case "blobPut":
      case "pinBlobs":
      case "toDatacenter":
      case "report":
        this.#handlers.above?.run(effect);
        return;
      case "called":
      case "callerGone":
      case "peerAnswered":
      case "peerDrains":
      case "diskProblem":
      case "peerHealth":
      case "applied":
      case "archive":
        // Watches notify consumers of jobs; these effects are for observers.
        return;
      default:
        assertNever(effect);
    }
  }

  #onLeading({ kind: _, ...detail }: Extract<HostEffect, { kind: "leading" }>): void {
    const subject = this.config.name;
    this.note({ kind: "ledger.leads", subject, requester: this.#self, detail });
    this.#handlers.onEvent({ event: "leads", ...detail });
  }

  #onStore(event: StoreEvent): void {
    const store = this.#store;
    if (store === null) return;
    if (event.kind === "refused") this.#starting?.reject(store.refusal(event.refusal));
    else if (event.kind === "failed") this.#onStoreFailed(store.failure(event));
    else store.tell(event);
  }

  #onStoreFailed(error: Error): void {
    if (this.#started) this.#fail("the write-ahead log has failed", error);
    else this.#starting?.reject(error);
  }

  /** From now on the log is authoritative; then peers may be called. */
  async #firstStarted(groups: number): Promise<void> {
    const { config } = this;
    const way = await firstStartDone(config.dataDir);
    const detail = { way, groups };
    this.#handlers.log.event("info", "ledger.first-start", detail);
    this.note({ kind: "ledger.founded", subject: config.name, requester: SYSTEM, detail });
    this.#driver?.take({ kind: "founded" });
  }

  #fail(reason: string, error: unknown): void {
    this.#failed = true;
    this.#onLeft(0);
    this.#api?.abandon();
    this.#handlers.onFatal(reason, error);
  }

  async #closeAll(): Promise<void> {
    this.#driver?.stop();
    await this.#api?.close();
    await this.#network?.close();
    await this.#store?.close();
    await this.#audit?.close();
  }

  get #self(): AuditRequester {
    return { kind: "self", name: this.config.name };
  }
}

function isOfKind<Kind extends StartStep["kind"]>(
  step: StartStep,
  kind: Kind,
): step is Extract<StartStep, { kind: Kind }> {
  return step.kind === kind;
}
