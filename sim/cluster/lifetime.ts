/**
 * Lifetime of a simulated process: inputs during a pause wait, and inputs to a dead process are dropped. As in the
 * production loop, a process that resumes reads pending inputs before its timers fire.
 */

import type { Millis } from "../../src/core/base/brand.ts";
import type { NodeClock } from "../kernel/clock.ts";
import { type Cpu, compute } from "../kernel/cpu.ts";
import type { EventName, World } from "../kernel/world.ts";

interface Stashed {
  readonly timer: boolean;
  readonly run: () => void;
}

/** Maximum inputs that wait during a pause of a minute. */
const STASH_MAX = 100_000;

export class Lifetime {
  readonly name: string;
  readonly index: number;
  readonly clock: NodeClock;
  /** Makes inputs cost time; null: they are free. */
  readonly cpu: Cpu | null;
  readonly #world: World;
  state: "down" | "up" | "paused" = "down";
  /** Counts starts; events of an earlier process are void. */
  life = 0;
  /** How often it has resumed after a pause. */
  resumed = 0;
  powered = true;
  #timerAt = Number.POSITIVE_INFINITY;
  #stash: Stashed[] = [];

  constructor(name: string, index: number, clock: NodeClock, world: World, cpu: Cpu | null = null) {
    this.cpu = cpu;
    this.name = name;
    this.index = index;
    this.clock = clock;
    this.#world = world;
  }

  get local(): Millis {
    return this.clock.local(this.#world.now);
  }

  begin(): void {
    this.state = "up";
    this.powered = true;
    this.life++;
  }

  end(power: boolean): void {
    this.#world.note(`${this.name} ${power ? "loses power" : "is killed"}`);
    this.state = "down";
    this.#timerAt = Number.POSITIVE_INFINITY;
    this.#stash = [];
    this.cpu?.clear();
    if (!power) return;
    this.clock.reboot(this.#world.now);
    this.powered = false;
  }

  pause(): void {
    if (this.state !== "up") return;
    this.state = "paused";
    this.#world.note(`${this.name} pauses`);
  }

  resume(): void {
    if (this.state !== "paused") return;
    this.state = "up";
    this.resumed++;
    this.#world.note(`${this.name} resumes`);
    const stash = this.#stash;
    this.#stash = [];
    const { life } = this;
    for (const timers of [false, true]) {
      for (const { run, timer } of stash)
        if (timer === timers && this.life === life && this.state === "up") run();
    }
  }

  /** Runs now, or when the process resumes. */
  inLife(run: () => void, timer = false): void {
    if (this.state === "up") run();
    else if (this.state === "paused" && this.#stash.length < STASH_MAX)
      this.#stash.push({ run, timer });
  }

  /** Runs an input of a connection: now, when the CPU gets to it, or when the process resumes. */
  take(connection: number, run: () => void): void {
    compute(this.cpu, connection, () => this.inLife(run));
  }

  /** Runs only if the process is still the same. */
  after(delayMs: number, name: EventName, run: () => void): void {
    const { life } = this;
    this.#world.schedule(this.#world.now + delayMs, name, this.index, () => {
      if (this.life === life) this.inLife(run);
    });
  }

  /** One timer, for the earliest deadline. */
  arm(due: Millis | null, tick: () => void): void {
    if (due === null) return;
    // Rounding must not leave the clock slightly short of the deadline.
    const at = Math.max(this.#world.now, this.clock.world(due) + 1e-4);
    if (at >= this.#timerAt) return;
    this.#timerAt = at;
    const { life } = this;
    this.#world.schedule(at, "tick", this.index, () => {
      if (this.life !== life || this.state === "down") return;
      if (this.#timerAt === at) this.#timerAt = Number.POSITIVE_INFINITY;
      this.inLife(tick, true);
    });
  }
}
