/**
 * Requests of a gate to datacenters: whether a datacenter is asked at all, and which of its managers.
 *
 *   ask ─▶ CircuitBreaker of the datacenter ─▶ PeerPool of its managers ─▶ the links
 *            └ open: queued, or no answer            └──── outcome of each ◀────┘
 *
 * An unanswered request of one manager says nothing about the datacenter while another manager answers or is
 * connected: it may evict that manager from the pool, but does not open the circuit. (CB-1, AD-28.20)
 */

import { assertNever } from "../../base/assert.ts";
import { millis } from "../../base/brand.ts";
import type { Random } from "../../base/random.ts";
import { type LogLine, logLines } from "../../ledger/job/log-lines.ts";
import type { HealthDecision } from "../overload/health.ts";
import { PeerPool, type PoolView } from "../routing/peer-pool.ts";
import {
  BREAKER_DEFAULTS,
  type BreakerEffect,
  type BreakerInput,
  type BreakerView,
  CircuitBreaker,
} from "./breaker.ts";
import { ManagerWatch, type ManagerWatchView } from "./manager-watch.ts";
import type { GateRules } from "./rules.ts";
import type {
  DatacenterPlace,
  GateEffect,
  GateOptions,
  ManagerAnswer,
  ManagerMessage,
} from "./types.ts";

export interface DatacenterCall {
  readonly datacenter: string;
  /** Manager to ask while it is connected; null for any. */
  readonly manager: string | null;
  readonly message: ManagerMessage;
  /** Set if the request may be queued while the circuit is open; checked again before it is sent. */
  readonly isWanted?: () => boolean;
}

/** `answer` is null if none came or no manager was asked. */
export type Answered = (answer: ManagerAnswer | null, from: string | null) => void;

interface CallsHost {
  readonly now: number;
  readonly options: Pick<GateOptions, "config">;
  readonly rules: GateRules;
  emit(effect: GateEffect): void;
  log(
    level: "info" | "warn",
    event: string,
    fields: Readonly<Record<string, string | number>>,
  ): void;
}

/** One request with its single answer. */
interface Operation {
  readonly call: DatacenterCall;
  readonly done: Answered;
  /** Queued by the circuit, which retries it after a failure. */
  isQueued: boolean;
  isSettled: boolean;
}

/** `unsent`: no longer wanted. `lost`: the manager disconnected, but others are connected. */
type Outcome = "answered" | "unsent" | "lost" | "failed";

interface Sent {
  readonly way: Way;
  readonly manager: string;
  readonly at: number;
  readonly ended: (answer: ManagerAnswer | null) => void;
}

/** Route to one datacenter. */
interface Way {
  readonly name: string;
  readonly managers: readonly string[];
  readonly up: Set<string>;
  readonly pool: PeerPool;
  readonly circuit: CircuitBreaker<Operation>;
  readonly watch: ManagerWatch;
  /** Time of the last answer of any of its managers. */
  lastSeenAt: number;
}

export interface CallsView {
  readonly datacenter: string;
  readonly health: {
    readonly managers: readonly ManagerWatchView[];
    /** Evicted managers, and evictions suppressed because most failed at once. */
    readonly evicted: number;
    readonly held: number;
  };
  readonly circuit: BreakerView;
  readonly pool: PoolView;
}

const PING: ManagerMessage = { kind: "gate", request: { kind: "capacity" } };

export class DatacenterCalls {
  readonly #host: CallsHost;
  readonly #ways: ReadonlyMap<string, Way>;
  readonly #sent = new Map<number, Sent>();
  /** Callbacks to run after the current step, so that callers are not re-entered. */
  #answers: (() => void)[] = [];
  #ids = 0;

  constructor(host: CallsHost, places: readonly DatacenterPlace[], self: string, random: Random) {
    this.#host = host;
    this.#ways = new Map(
      places.map(({ managers, name }) => {
        const pool = new PeerPool({ selector: self, role: "manager" }, random.fork(name));
        const circuit = new CircuitBreaker<Operation>(BREAKER_DEFAULTS);
        const up = new Set<string>();
        const watch = new ManagerWatch();
        const lastSeenAt = Number.NEGATIVE_INFINITY;
        return [name, { name, managers, up, pool, circuit, watch, lastSeenAt }];
      }),
    );
  }

  /** Connected managers of a datacenter. */
  reachedIn(datacenter: string): readonly string[] {
    return [...(this.#ways.get(datacenter)?.up ?? [])];
  }

  /** One manager for requests that must all go to the same one; null if none is available. */
  managerIn(datacenter: string): string | null {
    const way = this.#ways.get(datacenter);
    return way?.circuit.snapshot().state === "CLOSED" ? way.pool.choose() : null;
  }

  /** Reason why a datacenter is not asked; null if it is. */
  hindrance(datacenter: string): string | null {
    const way = this.#ways.get(datacenter);
    if (way === undefined || way.up.size === 0) return "none of its managers can be reached";
    const { failures, state } = way.circuit.snapshot();
    return state === "CLOSED" ? null : `its circuit is ${state} after ${failures} failures`;
  }

  views(): readonly CallsView[] {
    const { now } = this.#host;
    return [...this.#ways.values()].map(({ circuit, name, pool, watch }) => ({
      ...{ datacenter: name, circuit: circuit.snapshot(), pool: pool.view(now) },
      health: { managers: watch.views(now), evicted: watch.evicted, held: watch.held },
    }));
  }

  /** Whether the managers of a datacenter accept no jobs or do not start them. */
  isDegraded(datacenter: string): boolean {
    return this.#ways.get(datacenter)?.watch.isDegraded(this.#host.now) ?? false;
  }

  circuitOf(datacenter: string): BreakerView | null {
    return this.#ways.get(datacenter)?.circuit.snapshot() ?? null;
  }

  onLink(datacenter: string, manager: string, up: boolean): void {
    const way = this.#ways.get(datacenter);
    if (way === undefined || way.up.has(manager) === up) return;
    const { now } = this.#host;
    if (up) {
      way.up.add(manager);
      // All managers are in the datacenter that was asked for.
      way.pool.add(manager, "same_dc", now);
      way.watch.up(manager, now);
      this.#reached(way);
    } else {
      way.up.delete(manager);
      way.pool.remove(manager, now);
      way.watch.down(manager);
    }
  }

  ask(call: DatacenterCall, done: Answered): void {
    const way = this.#ways.get(call.datacenter);
    const operation = { call, done, isQueued: false, isSettled: false };
    if (way === undefined) {
      this.#settle(operation, null, null);
      return;
    }
    if (!this.#host.rules.returnNoticed && way.circuit.snapshot().state === "OPEN") {
      this.#settle(operation, null, null);
      return;
    }
    const whenOpen = call.isWanted === undefined ? "reject" : "queue";
    this.#step(way, { kind: "request", op: operation, whenOpen });
  }

  /**
   * Asks a datacenter for its capacity regardless of its circuit, so that reachability is known without traffic, and an
   * open circuit is probed as soon as possible. (AD-33a, CB-5)
   */
  probe(datacenter: string, done: Answered): void {
    const way = this.#ways.get(datacenter);
    if (way === undefined) return;
    this.#send(way, null, PING, (answer, from) => {
      if (answer !== null) this.#reached(way);
      this.#answers.push(() => done(answer, from));
    });
  }

  onAnswered(id: number, answer: ManagerAnswer | null): void {
    const sent = this.#sent.get(id);
    if (sent === undefined) return;
    this.#sent.delete(id);
    const { at, manager, way } = sent;
    const { now } = this.#host;
    if (answer === null) {
      way.pool.failed(manager, now);
      way.watch.missed(manager);
    } else {
      way.lastSeenAt = now;
      way.watch.heard(manager, reportedBy(answer), now);
      way.pool.succeeded(manager, now - at, now);
    }
    sent.ended(answer);
  }

  /** Callbacks to run after everything else in a step. */
  takeAnswers(): readonly (() => void)[] {
    const answers = this.#answers;
    this.#answers = [];
    return answers;
  }

  nextDeadline(): number {
    const all = [...this.#ways.values()].flatMap((way) => [
      this.#probeAt(way),
      ...[way.pool.nextDeadline(), way.watch.nextDeadline()],
    ]);
    return Math.min(Number.POSITIVE_INFINITY, ...all);
  }

  #probeAt({ circuit }: Way): number {
    const { returnNoticed } = this.#host.rules;
    return (returnNoticed ? circuit.nextDeadline() : null) ?? Number.POSITIVE_INFINITY;
  }

  #reached(way: Way): void {
    if (this.#host.rules.returnNoticed) this.#step(way, { kind: "reachable" });
  }

  onTick(): void {
    const { now } = this.#host;
    for (const way of this.#ways.values()) {
      if (this.#probeAt(way) <= now) this.#step(way, { kind: "tick" });
      for (const silent of way.watch.due(now)) this.#send(way, silent, PING, () => undefined);
      if (way.pool.nextDeadline() > now) continue;
      for (const evicted of way.pool.onTick(now)) this.#send(way, evicted, PING, () => undefined);
    }
  }

  #step(way: Way, first: BreakerInput<Operation>): void {
    // A request without any connected manager fails within the same step.
    const inputs = [first];
    for (let input = inputs.shift(); input !== undefined; input = inputs.shift())
      for (const effect of way.circuit.step(input, millis(this.#host.now)))
        this.#perform(way, effect, (outcome) => inputs.push(outcome));
  }

  #perform(
    way: Way,
    effect: BreakerEffect<Operation>,
    next: (outcome: BreakerInput<Operation>) => void,
  ): void {
    switch (effect.kind) {
      case "send":
        this.#carry(way, effect.call, effect.ops, next);
        return;
      case "ping":
        this.#ping(way, effect.call, next);
        return;
      case "queued":
        effect.op.isQueued = true;
        return;
      case "rejected":
      case "expired":
        this.#settle(effect.op, null, null);
        return;
      case "delivered":
        return;
      case "stateChanged":
        this.#logChange(way, effect);
        return;
      case "replayed":
        this.#say("CircuitReplayed", logLines.circuitReplayed(way.name, effect.count));
        return;
      default:
        assertNever(effect);
    }
  }

  #logChange(
    { name }: Way,
    { failures, to }: Extract<BreakerEffect<Operation>, { kind: "stateChanged" }>,
  ): void {
    if (to === "OPEN") this.#say("CircuitOpened", logLines.circuitOpened(name, failures));
    else if (to === "CLOSED") this.#say("CircuitClosed", logLines.circuitClosed(name));
  }

  /** Log texts that runbooks rely on. (LOGX-1) */
  #say(event: string, { level, message }: LogLine): void {
    this.#host.log(level === "WARNING" ? "warn" : "info", event, { message });
  }

  /** Sends operations in order; those behind a failed one are retried with it. */
  #carry(
    way: Way,
    call: number,
    operations: readonly Operation[],
    next: (outcome: BreakerInput<Operation>) => void,
  ): void {
    const outcomes: (Outcome | null)[] = operations.map(() => null);
    let isSending = true;
    const ended = (at: number, outcome: Outcome): void => {
      outcomes[at] = outcome;
      if (outcomes.includes(null)) return;
      const result = resultOf(call, outcomes);
      if (isSending) next(result);
      else this.#step(way, result);
    };
    for (const [at, operation] of operations.entries()) {
      const { call: asked, isQueued } = operation;
      if (operation.isSettled) ended(at, "unsent");
      else if (isQueued && asked.isWanted?.() === false) {
        this.#settle(operation, null, null);
        ended(at, "unsent");
      } else
        this.#send(way, asked.manager, asked.message, (answer, from, outcome) => {
          if (answer !== null || !isQueued) this.#settle(operation, answer, from);
          ended(at, outcome);
        });
    }
    isSending = false;
  }

  #ping(way: Way, call: number, next: (outcome: BreakerInput<Operation>) => void): void {
    let isSending = true;
    this.#send(way, null, PING, (_answer, _from, outcome) => {
      const result = resultOf(call, [outcome]);
      if (isSending) next(result);
      else this.#step(way, result);
    });
    isSending = false;
  }

  #send(
    way: Way,
    named: string | null,
    message: ManagerMessage,
    ended: (answer: ManagerAnswer | null, from: string | null, outcome: Outcome) => void,
  ): void {
    const { config } = this.#host.options;
    const manager = named !== null && way.up.has(named) ? named : this.#choose(way, message);
    if (manager === null) {
      ended(null, null, "failed");
      return;
    }
    const id = ++this.#ids;
    const at = this.#host.now;
    way.watch.asked(manager, at);
    this.#sent.set(id, {
      ...{ way, manager, at },
      ended: (answer) => ended(answer, manager, outcomeOf(way, manager, at, answer)),
    });
    const { askTimeoutMs: timeoutMs } = config;
    this.#host.emit({ kind: "ask", id, datacenter: way.name, manager, message, timeoutMs });
  }

  /** Next manager in turn that may be asked. If none may, an unhealthy one is better than none. */
  #choose({ pool, up, watch }: Way, message: ManagerMessage): string | null {
    const isNew = message.kind === "client" && message.request.kind === "submit";
    const passed = new Map<HealthDecision, string>();
    // Rotates over all managers, skipping only unhealthy ones.
    for (let turn = 0; turn < up.size; turn++) {
      const next = pool.choose();
      if (next === null) return null;
      const decision = watch.decision(next, this.#host.now);
      if (decision === "route" || (decision === "drain" && !isNew)) return next;
      if (!passed.has(decision)) passed.set(decision, next);
    }
    return passed.get("investigate") ?? passed.get("drain") ?? passed.get("evict") ?? null;
  }

  #settle(operation: Operation, answer: ManagerAnswer | null, from: string | null): void {
    operation.isSettled = true;
    this.#answers.push(() => operation.done(answer, from));
  }
}

/** Health that a manager reports about itself. */
function reportedBy(answer: ManagerAnswer): Parameters<ManagerWatch["heard"]>[1] {
  if (answer.kind !== "capacity" || answer.health == null) return null;
  return { health: answer.health, workers: answer.workers };
}

function outcomeOf(way: Way, manager: string, at: number, answer: ManagerAnswer | null): Outcome {
  if (answer !== null) return "answered";
  const isGone = !way.up.has(manager) && way.up.size > 0;
  return isGone || way.lastSeenAt >= at ? "lost" : "failed";
}

function resultOf(
  call: number,
  outcomes: readonly (Outcome | null)[],
): Extract<BreakerInput<Operation>, { readonly call: number }> {
  const open = outcomes.findIndex((one) => one === "lost" || one === "failed");
  const done = open < 0 ? outcomes.length : open;
  if (outcomes.includes("failed")) return { kind: "failed", call, done };
  const isHeard = outcomes.includes("answered");
  return isHeard && open < 0 ? { kind: "succeeded", call } : { kind: "aborted", call, done };
}
