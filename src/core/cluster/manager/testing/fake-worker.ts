/** Fake worker as managers see it: accepts orders of the highest view in order, and repeats its events. */

import {
  type Announce,
  type Drain,
  HEARTBEAT_MS,
  type Orders,
  type RelayedEvent,
  type WorkerEvent,
  type WorkerHeartbeat,
} from "../../messages.ts";
import { KeptFrames } from "../../worker/kept-frames.ts";
import type { ManagerInput } from "../types.ts";
import { FakeCore } from "./fake-core.ts";

type Answer = Extract<ManagerInput, { kind: "workerAnswer" }>["answer"];

interface Held {
  view: number;
  manager: number;
  nextOrder: number;
  nextEvent: number;
  waiting: WorkerEvent[];
  underWay: boolean;
  readonly cores: Map<number, FakeCore>;
  readonly kept: KeptFrames;
  readonly tokens: Map<number, number>;
}

export class FakeWorker {
  /** User that job code runs as, as reported. */
  rights: Pick<WorkerHeartbeat, "jobCodeRights" | "executorUser"> = {};
  readonly name: string;
  readonly coreCount: number;
  readonly jobs = new Map<string, Held>();
  /** Every core ever opened, including terminated ones. */
  readonly opened: FakeCore[] = [];
  /** Time to start the process of a core. */
  spawnMs = 0;
  /** Number of cores killed on order. */
  killed = 0;
  incarnation = 1;
  alive = true;
  /** Cut off in both directions. */
  cut = false;
  /** Receives nothing. */
  deaf = false;
  draining = false;
  /** Reported number of running executions; 0: reports nothing about its work. */
  running = 0;
  /** None of them advances. */
  isFrozen = false;
  beatAt = 0;
  #advance = 0;
  /** How long a core generates load, whatever its plan says. */
  loadMs: number;

  constructor(name: string, cores: number, loadMs: number) {
    this.name = name;
    this.coreCount = cores;
    this.loadMs = loadMs;
  }

  /** Reported queue length. */
  queued = 0;

  /** Contents of the next heartbeat. */
  report(now: number): {
    readonly queued: number;
    readonly advance: number;
    readonly draining: boolean;
    readonly running: number;
  } {
    if (!this.isFrozen) this.#advance = now;
    const { draining, queued, running } = this;
    return { advance: this.#advance, draining, queued, running };
  }

  restart(): void {
    this.incarnation++;
    this.jobs.clear();
    this.alive = true;
  }

  take(message: Announce | Orders | Drain, manager: number, now: number): Answer {
    if (message.kind === "drain") {
      this.draining = true;
      return { kind: "taken", next: 0 };
    }
    const { job: name, kind, view } = message;
    const known = this.jobs.get(name);
    if (kind === "orders" && message.incarnation !== this.incarnation)
      return { kind: "refused", reason: "wrongIncarnation", message: "started again" };
    if (known !== undefined && view < known.view)
      return { kind: "refused", reason: "staleView", message: `view ${known.view}` };
    const held = known ?? newHeld(view, manager);
    this.jobs.set(name, held);
    if (view > held.view) follow(held, view, manager);
    if (message.kind === "announce") {
      const cores = [...held.cores.keys()];
      const token = (core: number): number | null => held.tokens.get(core) ?? null;
      const running = cores.map((core) => ({ core, token: token(core) }));
      return { kind: "announced", cores: running, events: held.nextEvent + held.waiting.length };
    }
    for (const [at, order] of message.orders.entries()) {
      if (message.first + at !== held.nextOrder) continue;
      held.nextOrder++;
      this.#carryOut(held, order, now);
    }
    return { kind: "taken", next: held.nextOrder };
  }

  #carryOut(held: Held, order: Orders["orders"][number], now: number): void {
    if (order.kind === "open") {
      for (const core of order.cores) {
        if (held.cores.has(core)) continue;
        const opened = new FakeCore(this.loadMs, now + this.spawnMs);
        held.cores.set(core, opened);
        this.opened.push(opened);
      }
    } else if (order.kind === "release") for (const core of order.cores) held.cores.delete(core);
    else if (order.kind === "kill") {
      this.killed++;
      this.lose(held, order.core);
    } else this.#command(held, order, now);
  }

  #command(
    held: Held,
    { command, core, token }: Extract<Orders["orders"][number], { kind: "command" }>,
    now: number,
  ): void {
    if (token !== null) held.tokens.set(core, token);
    held.cores.get(core)?.handle(command, now);
  }

  lose(held: Held, core: number, complete = false): void {
    const what = `core ${core} ended with SIGKILL`;
    if (held.cores.delete(core)) held.waiting.push({ kind: "coreLost", core, what, complete });
  }

  tick(now: number): void {
    for (const held of this.jobs.values()) {
      for (const [core, fake] of held.cores) {
        fake.tick(now);
        for (const event of fake.takeEvents(now)) {
          const row = { kind: "core", core, event: event as RelayedEvent } as const;
          held.kept.onEvent(row);
          held.waiting.push(row);
        }
      }
    }
  }

  isBeatDue(now: number): boolean {
    if (now < this.beatAt) return false;
    this.beatAt = now + HEARTBEAT_MS;
    return true;
  }
}

function newHeld(view: number, manager: number): Held {
  return {
    ...{ view, manager, nextOrder: 0, nextEvent: 0, waiting: [], underWay: false },
    ...{ cores: new Map(), tokens: new Map(), kept: new KeptFrames() },
  };
}

/** Restarts the numbering, with finished executions and unconfirmed events. */
function follow(held: Held, view: number, manager: number): void {
  held.view = view;
  held.manager = manager;
  held.nextOrder = 0;
  held.nextEvent = 0;
  held.underWay = false;
  held.waiting.unshift(...held.kept.all.filter((event) => !held.waiting.includes(event)));
}
