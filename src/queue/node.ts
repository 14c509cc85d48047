/**
 * A queue node: database, election, worker, API and page in one process.
 *
 *     database ◄── leader (while elected) ◄── API ◄── clients, other nodes
 *                     ▲
 *                     └── worker (in this process by call, in others by HTTP)
 *
 * The role over time is the pure state machine of core/queue/role.ts; this file executes its decisions.
 */

import { randomUUID } from "node:crypto";
import { performance } from "node:perf_hooks";
import { errorText } from "../core/base/error-text.ts";
import { QueueError } from "../core/queue/errors.ts";
import { bootState, nextRoleDeadline, type RoleState, stepRole } from "../core/queue/role.ts";
import { type QueueSettings, type Role, settingProblems } from "../core/queue/settings.ts";
import { Background, type Work } from "../host/background.ts";
import type { AuditCounts, AuditEvent, AuditRequester, OpenAudit } from "../host/ports/audit.ts";
import { startTimer } from "../host/timer.ts";
import type { RpcCall } from "./api/rpc.ts";
import { RpcClient, wasNeverSent } from "./api/rpc-client.ts";
import type { LeaderPort, NodeRegistration } from "./api/types.ts";
import { type ApiHost, QueueApi } from "./api.ts";
import { tickActivity } from "./leader/activity-ticks.ts";
import { Feed } from "./leader/feed.ts";
import { Leader } from "./leader/leader.ts";
import { QueueMetrics } from "./leader/metrics.ts";
import { LEADER_BELIEVED_MS, LeaderFinder } from "./leader-finder.ts";
import type { NodeOptions } from "./node-options.ts";
import type { NodeReadiness } from "./served-node.ts";
import { checkAddress, QueueServer } from "./server.ts";
import { shareToken } from "./shared-token.ts";
import { type Database, loadMigrations } from "./store/database.ts";
import { EmbeddedDatabase } from "./store/embedded.ts";
import { PostgresDatabase } from "./store/postgres.ts";
import { type LeaderRow, Reader } from "./store/reader.ts";
import { Worker } from "./worker/worker.ts";
import type { CallContext } from "./worker-api.ts";

export type { NodeOptions } from "./node-options.ts";
export { blameExecution } from "./worker/execution.ts";

/** Requester for actions of the embedding program. */
const SYSTEM: AuditRequester = { kind: "system", name: "" };

const LEADER_LOOK_MS = 100;
/** Longest wait of a write for a leader before its caller gets an error. */
const LEADER_AWAITED_MS = 5_000;
const FORMER_LEADER: ReadonlySet<string> = new Set(["NOT_LEADER", "READ_ONLY"]);
/** Time for background work of the node to finish once it has stopped. */
const BACKGROUND_MS_MAX = 1_000;

/** A call that this node makes on itself. */
const LOCAL_CALL: Omit<CallContext, "requester" | "scope"> = {
  forwarded: true,
  gone: () => false,
  onGone: () => undefined,
};

export class QueueNode implements ApiHost {
  readonly run = randomUUID();
  readonly feed = new Feed();
  readonly metrics = new QueueMetrics();
  readonly reader: Reader;
  readonly background: Background;
  readonly #options: NodeOptions;
  readonly #database: Database;
  readonly #api: QueueApi;
  readonly #server: QueueServer;
  #url = "";
  #token: string | undefined;
  /** The assigned role; the current one is `#role`. */
  #assigned: Role;
  #role: RoleState;
  /** Set while leading with its memory loaded. */
  #leader: Leader | undefined;
  /** Set while holding the leadership, perhaps still loading. */
  #candidate: Leader | undefined;
  #beginning: Promise<void> = Promise.resolve();
  #worker: Worker | undefined;
  #audit: OpenAudit | undefined;
  /** Finds the leader elsewhere. */
  readonly #elsewhere: LeaderFinder;
  #election: Promise<void> = Promise.resolve();
  #wakeElection: (() => void) | undefined;
  #leaderLook: Work | undefined;
  /** Takes part in election and work. */
  #joined = false;
  #stopped = false;

  private constructor(options: NodeOptions, database: Database) {
    this.#options = options;
    this.background = new Background((work, error) => {
      // Another node leads: that is no failure, and is logged elsewhere.
      const deposed = error instanceof QueueError && error.code === "NOT_LEADER";
      options.log.event(deposed ? "info" : "error", deposed ? "work.ended" : "work.failed", {
        work,
        problem: errorText(error),
      });
    });
    this.#database = database;
    this.#assigned = options.role;
    this.reader = new Reader(database, options.settings.heartbeatMs);
    this.#role = bootState(this.#roleOptions(), performance.now());
    this.#api = new QueueApi(this);
    this.#server = new QueueServer({
      node: this,
      api: this.#api,
      token: () => this.#token,
      scopedTokens: options.scopedTokens ?? {},
      tls: options.tls,
      log: options.log,
    });
    this.#token = options.token;
    const { nodeId: forwardedBy, tls } = options;
    this.#elsewhere = new LeaderFinder({
      run: this.run,
      read: () => this.reader.leader(),
      connect: (url) => new RpcClient({ url, token: this.#token, ca: tls?.ca, forwardedBy }),
    });
  }

  static async start(options: NodeOptions): Promise<QueueNode> {
    const problems = settingProblems(options.settings);
    if (problems.length > 0) throw new QueueError("INVALID_PARAMS", problems.join("; "));
    // Before creating anything that an unreachable node would leave behind.
    await checkAddress(options.listen);
    const database =
      options.databaseUrl === undefined
        ? await EmbeddedDatabase.open(options.dataDirectory)
        : new PostgresDatabase(options.databaseUrl);
    const node = new QueueNode(options, database);
    try {
      await node.#begin();
      return node;
    } catch (error) {
      await node.stop(0).catch(() => undefined);
      throw error;
    }
  }

  /** Address of the page for a browser on this machine; opens it with the node's token. */
  get pageUrl(): string {
    const token = this.#token === undefined ? "" : `#token=${encodeURIComponent(this.#token)}`;
    return `${this.#server.url}/${token}`;
  }

  get url(): string {
    return this.#url;
  }

  get storage(): Database["kind"] {
    return this.#database.kind;
  }

  get nodeId(): string {
    return this.#options.nodeId;
  }

  /** Current role, as shown to users. */
  get roleName(): "leader" | "worker" | "observer" {
    if (this.#role.kind === "leading") return "leader";
    return this.#role.kind === "working" ? "worker" : "observer";
  }

  get settings(): QueueSettings {
    return this.#options.settings;
  }

  get maxAttempts(): number {
    return this.#options.settings.maxAttempts;
  }

  get clientBundles(): boolean {
    return this.#options.clientBundles ?? false;
  }

  get readOnly(): boolean {
    return this.#assigned === "observer";
  }

  get audited(): AuditCounts {
    return this.#audit?.counts ?? { recorded: 0, dropped: 0 };
  }

  note(event: AuditEvent): void {
    this.#audit?.record(event);
  }

  /** Whether work can be accepted: the database answers, there is a leader, and it accepts this node. */
  async ready(): Promise<NodeReadiness> {
    const why = this.#worker?.refusal ?? null;
    if (why !== null) return { ready: false, why };
    const leader = await this.reader.leader().catch(() => null);
    return { ready: leader?.alive === true };
  }

  leader(): Leader | undefined {
    return this.#leader;
  }

  leaderRow(): Promise<LeaderRow | null> {
    return this.reader.leader();
  }

  /** Forwards a write to the leader; waits a little between two leaders. */
  async forward(call: RpcCall, context: CallContext): Promise<unknown> {
    const deadline = performance.now() + LEADER_AWAITED_MS;
    while (performance.now() < deadline && !this.#stopped) {
      if (this.#leader !== undefined) return this.#api.perform(call, { ...context, ...LOCAL_CALL });
      const remote = await this.#elsewhere.find();
      if (remote !== undefined) {
        try {
          return await remote.rpc.call(call.method, call.params);
        } catch (error) {
          // Rejected or never sent, so nothing was written: the address was a former leader's.
          const former = error instanceof QueueError && FORMER_LEADER.has(error.code);
          if (!former && !wasNeverSent(error)) throw error;
          this.#elsewhere.forget(remote);
        }
      }
      await this.background.pause(LEADER_LOOK_MS);
    }
    throw new QueueError("NO_LEADER", "no node leads at the moment; try again in a few seconds");
  }

  /** The leader's address when another node leads: for forwarding streams. */
  async leaderUrl(): Promise<string | undefined> {
    return this.#leader === undefined ? (await this.#elsewhere.find())?.rpc.url : undefined;
  }

  /** Changes the role while running: an observer gives up leadership and work, and may come back. (TQ-3) */
  async become(role: Role): Promise<void> {
    if (this.#stopped || role === this.#assigned) return;
    this.#options.log.event("info", "role.assigned", { old: this.#assigned, new: role });
    await this.#withdraw(this.#options.settings.gracePeriodMs);
    this.#assigned = role;
    this.#role = bootState(this.#roleOptions(), performance.now());
    await this.#join();
  }

  /** Accepts no new work; running tasks may finish within the grace period, the rest goes back to the queue. */
  async stop(graceMs: number, requester: AuditRequester = SYSTEM): Promise<number> {
    if (this.#stopped) return 0;
    this.note({ kind: "node.leaving", subject: this.#options.nodeId, requester });
    const returned = await this.#withdraw(graceMs, () => {
      this.#stopped = true;
    });
    await this.#server.close();
    this.#elsewhere.close();
    // The node makes no database calls after this.
    const left = await this.background.stop(BACKGROUND_MS_MAX);
    if (left.length > 0) this.#options.log.event("warn", "work.left", { left });
    await this.#database.close();
    await this.#audit?.close();
    return returned;
  }

  /** Ends work and leadership, cleanly, in that order; the API goes on. */
  async #withdraw(graceMs: number, onWorkEnded: () => void = () => undefined): Promise<number> {
    const returned = (await this.#worker?.stop(graceMs)) ?? 0;
    this.#worker = undefined;
    onWorkEnded();
    this.#joined = false;
    this.#leaderLook?.cancel();
    this.#wakeElection?.();
    await this.#election;
    const leader = this.#candidate;
    if (leader === undefined) return returned;
    this.#candidate = undefined;
    this.#leader = undefined;
    leader.end();
    this.#noteLeader(leader.epoch, false);
    await this.#beginning;
    const ids = this.#database.kind === "embedded" ? leader.submits.unusedIds : null;
    if (ids !== null)
      await this.#database.query("ids-return", [...ids], "control").catch(() => undefined);
    await this.#database
      .query("leader-release", [leader.epoch, this.run], "control")
      .catch(() => undefined);
    return returned;
  }

  async #begin(): Promise<void> {
    const { listen, log } = this.#options;
    const applied = await this.#database.migrate(loadMigrations());
    if (applied.length > 0) log.event("info", "database.migrated", { applied });
    const inline = Object.entries(this.#options.executors).filter(
      ([, { runs }]) => runs === undefined,
    );
    if (inline.length > 0) {
      const why =
        "functions of this program share its loop and memory; isolateExecutors(file) does not";
      log.event("info", "executors.inline", { executors: inline.map(([name]) => name), why });
    }
    // The lock on the data directory proves that no other process is alive: no need to wait for a lease.
    if (this.#database.kind === "embedded") await this.#database.query("leader-vacate", []);
    if (this.#token === undefined && this.#options.tokenFile !== undefined)
      this.#token = await shareToken(this.#database, this.#options.tokenFile);
    await this.#server.listen(listen);
    this.#url = this.#options.advertise ?? this.#server.url;
    this.#audit = await this.#options.openAudit?.();
    await this.#join();
  }

  /** Elects and works, as the role says. */
  async #join(): Promise<void> {
    const { log, settings } = this.#options;
    const role = this.#assigned;
    const maxParallel = role === "observer" ? 0 : settings.maxParallel;
    if (role !== "observer") {
      this.#joined = true;
      await this.#elect();
      if (role === "leader") await this.#mustLead();
      this.#election = this.#electionLoop();
      await this.#beginning;
    }
    this.#leaderLook = this.background.every("notice the leader", LEADER_BELIEVED_MS, () =>
      this.#elsewhere.notice(),
    );
    const registration: NodeRegistration = {
      node_id: this.#options.nodeId,
      run: this.run,
      role,
      url: this.#url,
      // A node that runs nothing is visible, and gets no tasks.
      executor_types: maxParallel === 0 ? [] : Object.keys(this.#options.executors),
      capabilities: this.#options.capabilities ?? {},
      max_parallel: maxParallel,
    };
    this.#worker = new Worker({
      registration,
      executors: this.#options.executors,
      settings,
      leader: () => this.#awaitLeader(),
      log,
      background: this.background,
    });
    this.#worker.start();
  }

  #roleOptions() {
    const { settings } = this.#options;
    return {
      role: this.#assigned,
      leaseMs: settings.leaderLeaseMs,
      renewMs: settings.leaderRenewMs,
    };
  }

  async #mustLead(): Promise<void> {
    const deadline = performance.now() + 2 * this.#options.settings.leaderLeaseMs;
    while (this.#role.kind !== "leading") {
      if (performance.now() > deadline) {
        const leader = await this.reader.leader();
        throw new QueueError(
          "NOT_LEADER",
          `cannot lead: ${leader?.node_id ?? "another node"} does, at ${leader?.url}`,
        );
      }
      await this.background.pause(LEADER_LOOK_MS);
      await this.#elect();
    }
  }

  /** Executes the decisions of the role machine at its deadlines, until the node stops. */
  async #electionLoop(): Promise<void> {
    while (this.#joined) {
      const deadline = nextRoleDeadline(this.#role);
      if (deadline === null) return;
      const waitMs = deadline - performance.now();
      if (waitMs > 0) {
        await new Promise<void>((resolve) => {
          const timer = startTimer(waitMs, resolve);
          this.#wakeElection = () => {
            timer.cancel();
            resolve();
          };
        });
      }
      if (this.#joined) await this.#elect();
    }
  }

  async #elect(): Promise<void> {
    const state = this.#role;
    if (state.kind === "observing" || (state.kind === "working" && state.tryAt === null)) return;
    const sentAt = performance.now();
    const { leaderLeaseMs } = this.#options.settings;
    try {
      if (state.kind === "leading") {
        const renewed = await this.#database.query(
          "leader-renew",
          [state.epoch, this.run, leaderLeaseMs],
          "control",
        );
        this.#step(renewed.length > 0 ? { kind: "renewed", sentAt } : { kind: "renewalRefused" });
        return;
      }
      const rows = await this.#database.query(
        "leader-acquire",
        [this.#options.nodeId, this.run, this.#url, leaderLeaseMs],
        "control",
      );
      const epoch = rows[0]?.["epoch"];
      if (epoch === undefined) this.#step({ kind: "held" });
      else this.#lead(Number(epoch), sentAt);
    } catch (error) {
      this.#options.log.event("warn", "election.failed", {
        reason: errorText(error),
      });
      this.#step(state.kind === "leading" ? { kind: "renewalFailed" } : { kind: "held" });
    }
  }

  /** Loading runs beside the renewals; a leadership that ends meanwhile ends it too. */
  #lead(epoch: number, sentAt: number): void {
    this.#step({ kind: "acquired", epoch, sentAt });
    this.metrics.leaderChanges++;
    const leader = new Leader({
      firstOfProcess: this.metrics.leaderChanges === 1,
      database: this.#database,
      epoch,
      run: this.run,
      nodeId: this.#options.nodeId,
      settings: this.#options.settings,
      feed: this.feed,
      log: this.#options.log,
      background: this.background,
      metrics: this.metrics,
      onFenced: () => {
        if (this.#role.kind !== "leading" || this.#role.epoch !== epoch) return;
        this.#step({ kind: "renewalRefused" });
        this.#wakeElection?.();
      },
    });
    this.#candidate = leader;
    this.#beginning = leader.begin().then(
      () => {
        if (this.#candidate !== leader) return;
        this.#leader = leader;
        tickActivity(this, leader);
      },
      (error: unknown) => {
        if (this.#candidate !== leader) return;
        this.#options.log.event("error", "leader.begin_failed", {
          epoch,
          reason: errorText(error),
        });
        this.#step({ kind: "renewalRefused" });
      },
    );
  }

  #step(input: Parameters<typeof stepRole>[2]): void {
    const before = this.#role;
    this.#role = stepRole(this.#roleOptions(), before, input, performance.now());
    if (before.kind === this.#role.kind) return;
    this.#options.log.event("info", "role.changed", {
      old: before.kind,
      new: this.#role.kind,
      epoch:
        this.#role.kind === "leading"
          ? this.#role.epoch
          : before.kind === "leading"
            ? before.epoch
            : null,
    });
    if (this.#role.kind === "leading") this.#noteLeader(this.#role.epoch, true);
    if (before.kind === "leading") {
      this.#noteLeader(before.epoch, false);
      this.#candidate?.end();
      this.#candidate = undefined;
      this.#leader = undefined;
    }
  }

  #noteLeader(epoch: number, leads: boolean): void {
    const { nodeId: name } = this.#options;
    this.note({
      kind: "leader.changed",
      subject: "queue",
      requester: { kind: "self", name },
      detail: { leader: leads ? name : null, epoch },
    });
  }

  /** Returns the leader, here or elsewhere; waits while there is none. */
  async #awaitLeader(): Promise<LeaderPort> {
    for (;;) {
      if (this.#leader !== undefined) return this.#leader;
      const remote = await this.#elsewhere.find().catch(() => undefined);
      if (this.#leader !== undefined) return this.#leader;
      if (remote !== undefined) return remote.port;
      if (this.#stopped) throw new QueueError("NO_LEADER", "the node has stopped");
      await this.background.pause(LEADER_LOOK_MS);
    }
  }
}
