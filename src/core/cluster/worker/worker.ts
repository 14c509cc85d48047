/**
 * State machine of a worker: runs executor cores on the orders of each job's leader.
 *
 *   announce, orders ─▶ view and incarnation current? stored on disk? ─▶ cores opened, commanded, released
 *   events of cores  ─▶ one numbered stream per job ─▶ the leader, repeated until acknowledged
 *   frames of cores  ─▶ merged by execution ─▶ the same stream
 *
 * - Orders of a view below the highest it has seen of a job are refused; so are those for another
 *   incarnation of this worker, which had other cores. (AD-10)
 * - A change of leader does not disturb running load: the new one announces its view, learns what runs, and gets
 *   the unacknowledged events. (FAIL-M5)
 * - Metrics are kept until acknowledged, even if their cores have exited. The last metrics of finished shares
 *   are kept for as long as the job exists, and sent to each new leader.
 * - Metrics are sent as often as managers can process them: newer ones replace queued ones. (AD-37)
 * - After a minute without any manager, load is stopped gracefully and its results are kept: load
 *   that nobody can stop is worse than a gap.
 */

import { assertNever } from "../../base/assert.ts";
import type { Millis } from "../../base/brand.ts";
import type { CoreEvent } from "../../load/job/core-messages.ts";
import {
  type Announce,
  HEARTBEAT_MS,
  type Order,
  type Orders,
  type Refusal,
  type RefusalReason,
  refusal,
  type Taken,
} from "../messages.ts";
import { BackpressureSignals, backpressureLevel, delayMs } from "../overload/backpressure.ts";
import { HeldJob, type Leader } from "./held-job.ts";
import { HeldJobs } from "./held-jobs.ts";
import { WORKER_RULES, type WorkerRules } from "./rules.ts";
import type { WorkerConfig, WorkerEffect, WorkerInput } from "./types.ts";
import { type FencedViews, ViewFence } from "./view-fence.ts";

/** Processes per CPU core: concurrent workflows may share one. */
export const PROCESSES_PER_CORE_MAX = 8;
/** Slack after the graceful stop of load; cores still running then are killed. */
const STOP_SLACK_MS = 1_500;
/** Time that load of a leaving worker has to stop and to report its last metrics. */
const LEAVE_MS = 3_000;
/** Delay before events that the leader did not accept are resent. */
const RETRY_MS = 200;
/** Silence after which a manager is asked whether a job still exists. */
const ASK_MS = 10_000;

/** Request that waits for its view to be on disk. */
interface Held {
  readonly manager: string;
  readonly id: number;
  readonly request: Announce | Orders;
}

type Answered = Extract<WorkerInput, { kind: "answered" }>;
type Logged = Extract<WorkerEffect, { kind: "log" }>;

export class Worker {
  readonly #config: WorkerConfig;
  readonly #rules: WorkerRules;
  readonly #fence: ViewFence;
  readonly #jobs = new HeldJobs();
  /** Job and core of each process. */
  readonly #slots = new Map<number, { readonly job: HeldJob; readonly core: number }>();
  /** Connected managers, and whether they accept merged metrics. */
  readonly #links = new Map<string, { readonly merges: boolean }>();
  readonly #signals = new BackpressureSignals();
  #slotCount = 0;
  /** Processes that were asked to exit and have not. */
  readonly #ending = new Set<number>();
  #held: Held[] = [];
  /** Writes of promises in progress. */
  #keeping = 0;
  #draining = false;
  #drained = false;
  #beatAt = Number.POSITIVE_INFINITY;
  #lastSeenAt: Millis | null = null;
  /** Load was stopped because no manager is reachable. */
  #isIsolated = false;
  /** Load still running at this time is killed, even if a manager is back. */
  #cutBy = Number.POSITIVE_INFINITY;
  #effects: WorkerEffect[] = [];
  #now = 0 as Millis;

  constructor(config: WorkerConfig, views: FencedViews, rules: WorkerRules = WORKER_RULES) {
    this.#config = config;
    this.#rules = rules;
    this.#fence = new ViewFence(views);
  }

  get usedCores(): number {
    return this.#slots.size + this.#ending.size;
  }

  get jobs(): readonly string[] {
    return [...this.#jobs.open.keys()];
  }

  get draining(): boolean {
    return this.#draining;
  }

  /** Queued requests and events, without metrics and lines, which may be delayed. (BP-4) */
  get queued(): number {
    const jobs = [...this.#jobs.open.values()];
    return jobs.reduce((sum, { events }) => sum + events.lasting, this.#held.length);
  }

  /** Delay between two metrics messages, by the overload level of managers. (AD-37.5) */
  figuresDelayMs(now: Millis): number {
    return delayMs(this.#signals.level(now));
  }

  step(input: WorkerInput, now: Millis): readonly WorkerEffect[] {
    this.#now = now;
    switch (input.kind) {
      case "link":
        if (input.up) this.#onUp(input.manager, input.merges ?? false);
        else this.#onDown(input.manager, input.heardAt);
        break;
      case "request":
        this.#lastSeenAt = now;
        this.#onRequest(input);
        break;
      case "answered":
        if (input.answer !== null) this.#lastSeenAt = now;
        this.#onAnswered(input, now);
        break;
      case "core":
        this.#onCore(input.slot, input.event);
        break;
      case "coreGone":
        this.#onCoreGone(input.slot, input.what);
        break;
      case "viewsKept":
        if (--this.#keeping === 0) this.#takeHeld();
        break;
      case "drain":
        this.#draining = true;
        // Every drain request is answered, even if the worker was drained before.
        this.#drained = false;
        this.#beat();
        break;
      case "leave":
        this.#draining = true;
        this.#cutAll("the worker was told to stop, and waited no longer for the job");
        this.#cutBy = now + LEAVE_MS;
        break;
      case "tick":
        break;
      default:
        assertNever(input);
    }
    this.#pass(now);
    const effects = this.#effects;
    this.#effects = [];
    return effects;
  }

  nextDeadline(): Millis | null {
    const at = Math.min(this.#beatAt, this.#isolationAt(), this.#cutBy, this.#sendAt());
    return at === Number.POSITIVE_INFINITY ? null : (at as Millis);
  }

  /** When to send without any further input. */
  #sendAt(): number {
    let at = Number.POSITIVE_INFINITY;
    if (this.#links.size === 0) return at;
    for (const job of this.#jobs.open.values())
      if (job.isOpen) at = Math.min(at, job.sendAt(this.#links.has(job.leader)));
    return at;
  }

  #isolationAt(): number {
    const alone = this.#links.size === 0 && this.#slots.size > 0 && this.#lastSeenAt !== null;
    return alone && !this.#isIsolated && this.#rules.isolationEndsLoad
      ? (this.#lastSeenAt ?? 0) + this.#config.isolationMs
      : Number.POSITIVE_INFINITY;
  }

  /** Handles deadlines and sends events after every input. */
  #pass(now: Millis): void {
    if (this.#beatAt <= now) {
      this.#beat();
      this.#beatAt = this.#links.size === 0 ? Number.POSITIVE_INFINITY : now + HEARTBEAT_MS;
    }
    if (this.#isolationAt() <= now) this.#onIsolated(now);
    if (this.#cutBy <= now) {
      this.#cutBy = Number.POSITIVE_INFINITY;
      this.#abandonAll();
    }
    for (const job of this.#jobs.open.values()) this.#send(job, now);
    const isReported = [...this.#jobs.open.values()].every(({ isOpen }) => !isOpen);
    if (this.#draining && !this.#drained && this.usedCores === 0 && isReported) {
      this.#drained = true;
      this.#emit({ kind: "drained" });
    }
  }

  /** Restores the last contact: neither failing calls nor the silence before the disconnect count as contact. */
  #onDown(manager: string, heardAt: Millis): void {
    if (!this.#links.delete(manager)) return;
    this.#signals.lost(manager);
    this.#lastSeenAt = heardAt;
    for (const job of this.#jobs.all) if (job.leader === manager) job.events.lost();
  }

  #onUp(manager: string, merges: boolean): void {
    this.#lastSeenAt = this.#now;
    this.#links.set(manager, { merges });
    for (const job of this.#jobs.all) if (job.leader === manager) job.onUp(merges, this.#now);
    if (this.#isIsolated) this.#log("warn", "worker.inContact", { manager });
    this.#isIsolated = false;
    this.#beatAt = Math.min(this.#beatAt, this.#now + HEARTBEAT_MS);
  }

  #beat(): void {
    const { name: worker, incarnation, cores, version } = this.#config;
    const draining = this.#draining;
    const heartbeat = { kind: "heartbeat", worker, incarnation, cores, version, draining } as const;
    const jobs = this.#rules.heardByAll ? [] : this.#jobs.all;
    const leaders = new Set(jobs.map(({ leader }) => leader));
    for (const to of this.#links.keys()) {
      if (leaders.size === 0 || leaders.has(to)) this.#emit({ kind: "heartbeat", to, heartbeat });
    }
  }

  #onRequest(held: Held): void {
    const { request } = held;
    const isOther = request.kind === "orders" && request.incarnation !== this.#config.incarnation;
    if (isOther) {
      const text = `this is incarnation ${this.#config.incarnation} of ${this.#config.name}`;
      this.#refuse(held.id, "wrongIncarnation", text);
      return;
    }
    const admitted = this.#fence.admit(request.job, request.view);
    if (admitted === "stale" && this.#rules.viewFenced) {
      const view = this.#fence.viewOf(request.job);
      this.#refuse(held.id, "staleView", `view ${view} of ${request.job} was announced here`);
      return;
    }
    this.#held.push(held);
    if (admitted === "raised") {
      this.#keeping++;
      this.#emit({ kind: "keepViews", views: this.#fence.views });
    }
    if (this.#keeping === 0 || !this.#rules.promiseDurable) this.#takeHeld();
  }

  #takeHeld(): void {
    const held = this.#held;
    this.#held = [];
    for (const one of held) {
      // A higher view may have arrived in the meantime.
      const isOver = one.request.view !== this.#fence.viewOf(one.request.job);
      if (isOver && this.#rules.viewFenced) {
        this.#refuse(one.id, "staleView", "a higher view was announced meanwhile");
      } else if (one.request.kind === "announce") this.#onAnnounce(one, one.request);
      else this.#onOrders(one, one.request);
    }
  }

  #onAnnounce({ id, manager }: Held, { job: name, view }: Announce): void {
    const job = this.#jobs.get(name);
    job?.follow(this.#leader(manager, view), this.#now);
    const [cores, events] = [job?.running() ?? [], job?.events.next ?? 0];
    this.#emit({ kind: "answer", id, answer: { kind: "announced", cores, events } });
  }

  #leader(name: string, view: number): Leader {
    return { name, view, merges: this.#links.get(name)?.merges ?? false };
  }

  #onOrders({ id, manager }: Held, { job: name, view, first, orders }: Orders): void {
    const leader = this.#leader(manager, view);
    let job = this.#jobs.get(name);
    if (job === undefined) {
      job = new HeldJob(name, leader, this.#config.errorKinds, this.#rules);
      this.#jobs.reopen(job);
    }
    job.follow(leader, this.#now);
    for (const [at, order] of orders.entries()) {
      const place = first + at;
      if (place !== job.nextOrder) continue;
      this.#carryOut(job, order, manager);
      job.nextOrder = place + 1;
    }
    const taken: Taken = { kind: "taken", next: job.nextOrder };
    this.#emit({ kind: "answer", id, answer: taken });
    this.#close(job);
  }

  #carryOut(job: HeldJob, order: Order, from: string): void {
    switch (order.kind) {
      case "open":
        this.#open(job, order, from);
        return;
      case "command":
        this.#command(job, order);
        return;
      case "release":
        for (const core of order.cores) this.#end(job, core, false);
        return;
      case "kill": {
        const slot = job.cores.get(order.core)?.slot;
        if (slot !== undefined) this.#emit({ kind: "endCore", slot, kill: true });
        return;
      }
      default:
        assertNever(order);
    }
  }

  #command(
    job: HeldJob,
    { command, core: number, token }: Extract<Order, { kind: "command" }>,
  ): void {
    if (command.kind === "acknowledge" && job.merged.acknowledged(command)) return;
    const core = job.cores.get(number);
    // The core is gone; the leader is being notified of its loss.
    if (core === undefined) return;
    // Ignores commands of an attempt before the current one. (AD-10)
    if (token !== null && token < (core.token ?? -1)) return;
    core.token = token ?? core.token;
    job.onCommand(number, command);
    this.#emit({ kind: "command", slot: core.slot, command });
  }

  /** An order that cannot be executed is accepted all the same, so that later ones are not blocked. */
  #open(job: HeldJob, order: Extract<Order, { kind: "open" }>, from: string): void {
    const room = this.#config.cores * PROCESSES_PER_CORE_MAX - this.usedCores;
    const fresh = order.cores.filter((core) => !job.cores.has(core));
    this.#jobs.reopen(job);
    if (this.#draining || fresh.length > room) {
      const what = this.#draining ? "it takes no more cores" : `it has room for ${room} cores`;
      for (const core of fresh) job.lost(core, what, true, this.#now);
      return;
    }
    const opened = fresh.map((core) => {
      const slot = ++this.#slotCount;
      this.#slots.set(slot, { job, core });
      job.open(core, slot);
      return { slot, core };
    });
    if (opened.length > 0) this.#emit({ kind: "open", job: job.name, from, opened, order });
  }

  /** Releases a core without reporting a loss. */
  #end(job: HeldJob, core: number, kill: boolean): void {
    const held = job.cores.get(core);
    if (held === undefined) return;
    job.cores.delete(core);
    job.merged.ended(core, null);
    this.#slots.delete(held.slot);
    this.#ending.add(held.slot);
    this.#emit({ kind: "endCore", slot: held.slot, kill });
  }

  #onCore(slot: number, event: CoreEvent): void {
    const held = this.#slots.get(slot);
    if (held === undefined || event.kind === "traced" || event.kind === "declared") return;
    if (event.kind === "calls") return;
    const { core, job } = held;
    const command = job.onEvent(core, event, this.#now);
    if (command !== null) this.#emit({ kind: "command", slot, command });
    const { cutFor = null, isIdle = false } = job.cores.get(core) ?? {};
    if (isIdle) this.#abandon(job, core, cutFor, true);
  }

  #onCoreGone(slot: number, what: string | null): void {
    this.#ending.delete(slot);
    const held = this.#slots.get(slot);
    if (held === undefined) return;
    const { core, job } = held;
    this.#slots.delete(slot);
    job.cores.delete(core);
    if (this.#rules.lossTold) job.lost(core, what ?? "it was ended", false, this.#now);
    this.#log("warn", "core.lost", { job: job.name, core, what: what ?? "" });
  }

  /**
   * Sends queued events. After a long silence the leader is asked with an empty message, or any other manager if the
   * leader has refused: the worker may have missed that the job finished or has a new leader. (T4)
   */
  #send(job: HeldJob, now: Millis): void {
    if (!job.isOpen) {
      this.#close(job);
      return;
    }
    job.gather(now);
    const asks = job.askAt <= now;
    if (asks || job.askAt === Number.POSITIVE_INFINITY) job.askAt = now + ASK_MS;
    if (job.notBefore > now) return;
    job.notBefore = 0;
    if (!asks && job.figuresAt > now && job.events.isPatient) {
      if (!this.#rules.waitingFiguresStay) job.events.clear();
      return;
    }
    job.figuresAt = 0;
    if (!job.isHeard && !asks) return;
    const knows = job.isHeard && this.#links.has(job.leader);
    const next = !knows && asks ? job.asked++ % this.#links.size : -1;
    const to = knows ? job.leader : ([...this.#links.keys()][next] ?? null);
    const row = to === null ? null : job.events.take(asks);
    if (to === null || row === null) return;
    job.askAt = now + ASK_MS;
    const { name: worker, incarnation } = this.#config;
    const { name, view } = job;
    const wantsHeld = this.#links.get(to)?.merges ?? false;
    const events = { worker, incarnation, job: name, view, ...row, wantsHeld };
    this.#emit({ kind: "events", to, events: { kind: "events", ...events } });
  }

  #onAnswered({ answer, job: name, view }: Answered, now: Millis): void {
    const job = this.#jobs.get(name);
    // Answers of another view refer to other numbers.
    if (job === undefined || job.view !== view) return;
    if (answer === null) job.events.lost();
    else if (answer.kind === "refused") this.#onEventsRefused(job, answer);
    else {
      job.isHeard = true;
      for (const held of answer.held ?? []) job.merged.acknowledged(held);
      this.#signals.heard(job.leader, backpressureLevel(answer.level ?? 0), now);
      const waitMs = this.figuresDelayMs(now);
      job.figuresAt = waitMs === 0 ? 0 : now + waitMs;
      if (!job.events.taken(answer.next)) job.notBefore = now + RETRY_MS;
    }
  }

  /** A manager that refuses events does not lead the job any more, or knows that it has finished. */
  #onEventsRefused(job: HeldJob, { message, reason }: Refusal): void {
    this.#log("warn", "events.refused", { job: job.name, reason, message });
    job.events.lost();
    if (reason !== "unknownJob" || !this.#rules.unknownJobEnds) {
      // The next leader announces itself, and gets them.
      job.isHeard = false;
      return;
    }
    for (const core of [...job.cores.keys()]) this.#end(job, core, true);
    job.events.clear();
    this.#close(job);
  }

  /**
   * Closes a job without cores and unreported events, until its leader reopens it. The position of its orders is
   * remembered, so that a repeated order is not executed again.
   */
  #close(job: HeldJob): void {
    if (job.cores.size > 0 || job.events.waiting > 0 || job.isClosed) return;
    this.#jobs.close(job);
    this.#emit({ kind: "closed", job: job.name });
  }

  /** Asks load to stop, then kills it. Metrics are kept for a later leader. */
  #onIsolated(now: Millis): void {
    this.#isIsolated = true;
    const seconds = this.#config.isolationMs / 1_000;
    this.#cutAll(`no manager answered for ${seconds} s: the worker ended its load`);
    const graces = [...this.#slots.values()].map(({ job }) => job.gracefulStopMs);
    const graceMs = Math.max(0, ...graces) + STOP_SLACK_MS;
    if (this.#rules.isolatedKilled) this.#cutBy = Math.min(this.#cutBy, now + graceMs);
    this.#log("warn", "worker.isolated", { afterMs: this.#config.isolationMs });
  }

  #cutAll(what: string): void {
    for (const [slot, { core, job }] of [...this.#slots]) {
      const held = job.cores.get(core);
      if (held === undefined || held.cutFor !== null) continue;
      for (const command of held.cut(what)) this.#emit({ kind: "command", slot, command });
      if (held.isIdle) this.#abandon(job, core, what, true);
    }
  }

  #abandonAll(): void {
    for (const { core, job } of [...this.#slots.values()])
      this.#abandon(job, core, job.cores.get(core)?.cutFor ?? null, false);
  }

  /** Reports an unfinished share as lost; the leader reassigns it to another core. */
  #abandon(job: HeldJob, core: number, what: string | null, complete: boolean): void {
    if (what === null) return;
    job.lost(core, what, complete, this.#now);
    this.#end(job, core, true);
  }

  #refuse(id: number, reason: RefusalReason, message: string): void {
    this.#emit({ kind: "answer", id, answer: refusal(reason, message) });
  }

  #log(level: Logged["level"], event: string, fields: Logged["fields"]): void {
    this.#emit({ kind: "log", level, event, fields });
  }

  #emit(effect: WorkerEffect): void {
    this.#effects.push(effect);
  }
}
