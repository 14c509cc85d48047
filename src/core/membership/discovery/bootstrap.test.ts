import { describe, expect, it } from "vitest";
import { millis } from "../../base/brand.ts";
import { type Address, address } from "../../base/ids.ts";
import { Random } from "../../base/random.ts";
import {
  BOOTSTRAP_DEFAULTS,
  Bootstrap,
  type BootstrapEffect,
  type BootstrapInput,
  type BootstrapOptions,
} from "./bootstrap.ts";

const SELF = address("10.0.0.1:7946");
const at = (place: number): Address => address(`10.0.1.${place}:7946`);

/** A network in which some addresses answer, driven by the machine's own deadlines. */
class World {
  readonly machine: Bootstrap;
  readonly joins: { readonly address: Address; readonly atMs: number }[] = [];
  readonly backoffs: number[] = [];
  now = 0;
  probing = 0;
  probingMax = 0;
  asked = 0;
  up: (to: Address) => boolean = () => false;
  dns: (name: string) => readonly Address[] | null = () => null;

  constructor(over: Partial<BootstrapOptions>) {
    const options = { self: SELF, cached: [], seeds: [], names: [], config: BOOTSTRAP_DEFAULTS };
    this.machine = new Bootstrap({ ...options, ...over }, new Random("bootstrap"));
  }

  push(input: BootstrapInput): void {
    this.#run(this.machine.step(input, millis(this.now)));
  }

  /** Until this time has passed or somebody was joined. */
  runUntil(endMs: number): void {
    for (;;) {
      const next = Math.min(this.machine.nextDeadline() ?? endMs, this.#nextProbe());
      if (next > endMs || this.joins.length > 0) break;
      this.now = Math.max(this.now, next);
      this.#deliver();
      this.push({ kind: "tick" });
    }
    this.now = endMs;
  }

  #flight: { readonly address: Address; readonly atMs: number }[] = [];

  #nextProbe(): number {
    return Math.min(Number.POSITIVE_INFINITY, ...this.#flight.map(({ atMs }) => atMs));
  }

  #deliver(): void {
    const due = this.#flight.filter(({ atMs }) => atMs <= this.now);
    this.#flight = this.#flight.filter(({ atMs }) => atMs > this.now);
    for (const { address: to } of due) {
      this.probing--;
      this.push({ kind: "probed", address: to, answered: this.up(to) });
    }
  }

  #run(effects: readonly BootstrapEffect[]): void {
    for (const effect of effects) {
      if (effect.kind === "resolve") {
        this.asked++;
        const addresses = this.dns(effect.name);
        this.push(
          addresses === null
            ? { kind: "resolveFailed", name: effect.name }
            : { kind: "resolved", name: effect.name, addresses, ttlMs: 5_000 },
        );
      } else if (effect.kind === "probe") {
        this.probing++;
        this.probingMax = Math.max(this.probingMax, this.probing);
        const tookMs = this.up(effect.address) ? 2 : effect.timeoutMs;
        this.#flight.push({ address: effect.address, atMs: this.now + effect.delayMs + tookMs });
      } else if (effect.kind === "cancelProbes") {
        this.#flight = [];
      } else if (effect.kind === "join") {
        this.joins.push({ address: effect.address, atMs: this.now });
      } else if (effect.to === "backoff") {
        this.backoffs.push(this.now);
      }
    }
  }
}

describe("bootstrap", () => {
  it("joins quickly when one of several seeds is up (BOOT-4)", () => {
    const world = new World({ seeds: [at(1), at(2), at(3)] });
    world.up = (to) => to === at(3);
    world.push({ kind: "start" });
    world.runUntil(10_000);
    expect(world.joins.map(({ address: to }) => to)).toEqual([at(3)]);
    expect(world.joins[0]?.atMs).toBeLessThan(150);
  });

  // BOOT-2, AD-28.24
  it("caps open probes at ten, and finds the one that answers among thirty", () => {
    const world = new World({ seeds: Array.from({ length: 30 }, (_, i) => at(i + 1)) });
    world.up = (to) => to === at(30);
    world.push({ kind: "start" });
    world.runUntil(10_000);
    expect(world.probingMax).toBe(10);
    expect(world.joins[0]?.address).toBe(at(30));
  });

  // BOOT-5, AD-28.25, C31-25
  it("backs off 0.5, 1, 2, 4, 8, 15, 15 s plus up to a quarter, without end", () => {
    const world = new World({ seeds: [at(1)] });
    world.push({ kind: "start" });
    world.runUntil(120_000);
    const waits = world.backoffs.slice(1).map((time, i) => time - (world.backoffs[i] ?? 0));
    [500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000].forEach((base, i) => {
      // Each wait is followed by a probe that times out.
      expect(waits[i]).toBeGreaterThanOrEqual(base + 500);
      expect(waits[i]).toBeLessThanOrEqual(base * 1.25 + 600);
    });
    world.up = () => true;
    world.runUntil(140_000);
    expect(world.joins).toHaveLength(1);
  });

  it("starts the cluster alone when only itself is named (BOOT-8)", () => {
    const world = new World({ seeds: [SELF] });
    world.push({ kind: "start" });
    expect(world.machine.state).toBe("joined");
    expect(world.machine.nextDeadline()).toBeNull();
  });

  it("falls back on seeds while DNS is down, and on an old answer later (BOOT-6, AD-28.3)", () => {
    const world = new World({ seeds: [at(1)], names: ["peers.local"] });
    world.up = (to) => to === at(1);
    world.push({ kind: "start" });
    world.runUntil(1_000);
    expect(world.joins[0]?.address).toBe(at(1));

    const later = new World({ names: ["peers.local"] });
    later.dns = () => [at(7)];
    later.push({ kind: "start" });
    later.runUntil(4_000);
    later.dns = () => null;
    later.up = (to) => to === at(7);
    later.runUntil(60_000);
    expect(later.joins[0]?.address).toBe(at(7));
  });

  // AD-28.2
  it("does not retry a failed name before its time, and resolves again when answers age", () => {
    const world = new World({ names: ["peers.local"] });
    world.push({ kind: "start" });
    world.runUntil(25_000);
    expect(world.asked).toBe(1);
    world.runUntil(60_000);
    expect(world.asked).toBe(2);
  });

  it("tries cached peers before seeds and DNS, each once (BOOT-1, AD-28.1)", () => {
    const world = new World({ cached: [at(3)], seeds: [at(3), at(1)], names: ["n"] });
    world.dns = () => [at(1), at(2)];
    const effects = world.machine.step({ kind: "start" }, millis(0));
    expect(effects.some(({ kind }) => kind === "resolve")).toBe(true);
    const probes = world.machine
      .step({ kind: "resolved", name: "n", addresses: [at(1), at(2)], ttlMs: null }, millis(1))
      .filter((effect) => effect.kind === "probe")
      .map((effect) => effect.kind === "probe" && effect.address);
    expect(probes).toEqual([at(3), at(1), at(2)]);
  });

  it("searches again when the last peer is lost, and stops when a peer found us (AD-28.26)", () => {
    const world = new World({ seeds: [at(1)] });
    world.up = () => true;
    world.push({ kind: "start" });
    world.runUntil(1_000);
    world.push({ kind: "peers", addresses: [at(1)] });
    world.joins.length = 0;
    world.push({ kind: "peers", addresses: [] });
    expect(world.machine.state).toBe("backoff");
    world.runUntil(5_000);
    expect(world.joins).toHaveLength(1);

    const silent = new World({ seeds: [at(1)] });
    silent.push({ kind: "start" });
    silent.runUntil(700);
    expect(silent.machine.state).toBe("backoff");
    silent.push({ kind: "peers", addresses: [at(9)] });
    expect(silent.machine.state).toBe("joined");
  });
});

describe("a configuration", () => {
  it.each([
    [{ probesMax: 0 }, "at least one probe"],
    [{ backoffMs: 20_000 }, "pauses grow"],
    [{ backoffMultiplier: 0.5 }, "pauses do not shrink"],
    [{ refreshMs: 0 }, "without a pause"],
  ])("with %j is refused at construction", (changes, problem) => {
    const config = { ...BOOTSTRAP_DEFAULTS, ...changes };
    expect(() => new World({ config })).toThrow(problem);
  });
});
