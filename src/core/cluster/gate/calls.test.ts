import { describe, expect, it } from "vitest";
import { Random } from "../../base/random.ts";
import type { ClientRequest } from "../messages.ts";
import { DatacenterCalls } from "./calls.ts";
import { GATE_RULES } from "./rules.ts";
import { GateWorld } from "./testing/world.ts";
import {
  GATE_DEFAULTS,
  type GateEffect,
  type ManagerAnswer,
  type ManagerMessage,
} from "./types.ts";

const ANSWER: ManagerAnswer = { kind: "controlled" };
const MESSAGE = { kind: "gate", request: { kind: "capacity" } } as const;

/** One datacenter with three managers. Managers in `silent` do not answer, the others answer after 5 ms. */
class Far {
  now = 0;
  readonly options = { config: GATE_DEFAULTS };
  readonly rules = GATE_RULES;
  readonly silent = new Set<string>();
  readonly logged: string[] = [];
  readonly asked: string[] = [];
  readonly messages: ManagerMessage[] = [];
  /** Managers that accept no jobs. */
  readonly draining = new Set<string>();
  readonly calls: DatacenterCalls;
  #due: { readonly at: number; readonly id: number; readonly answer: ManagerAnswer | null }[] = [];

  constructor(managers: readonly string[] = ["m1", "m2", "m3"]) {
    const places = [{ name: "eu", managers }];
    this.calls = new DatacenterCalls(this, places, "g1", new Random("far"));
    for (const manager of managers) this.calls.onLink("eu", manager, true);
  }

  emit(effect: GateEffect): void {
    if (effect.kind !== "ask") return;
    const { id, manager, message } = effect;
    this.asked.push(manager);
    this.messages.push(message);
    const isSilent = this.silent.has(manager);
    const at = this.now + (isSilent ? effect.timeoutMs : 5);
    this.#due.push({ at, id, answer: isSilent ? null : this.#answer(manager, message) });
  }

  #answer(manager: string, message: ManagerMessage): ManagerAnswer {
    if (message.kind !== "gate" || message.request.kind !== "capacity") return ANSWER;
    const room = { workers: 1, cores: 4, coresFree: 4, jobsQueued: 0 };
    const counts = { accepted: 0, dispatched: 0, dispatchable: 0 };
    const accepting = !this.draining.has(manager);
    return { kind: "capacity", ...room, health: { hasQuorum: true, accepting, ...counts } };
  }

  log(_level: string, event: string, { message }: Readonly<Record<string, unknown>>): void {
    this.logged.push(`${event}: ${message}`);
  }

  /** Answers in order; "none" for requests without one. */
  ask(manager: string | null, isWanted?: () => boolean): string[] {
    const call = { datacenter: "eu", manager, message: MESSAGE };
    const answers: string[] = [];
    this.calls.ask(isWanted === undefined ? call : { ...call, isWanted }, (answer, from) =>
      answers.push(answer === null ? "none" : (from ?? "")),
    );
    return answers;
  }

  link(manager: string, up: boolean): void {
    this.calls.onLink("eu", manager, up);
    this.run(0);
  }

  run(ms: number): void {
    for (const end = this.now + ms; ; this.now++) {
      const due = this.#due.filter(({ at }) => at <= this.now);
      this.#due = this.#due.filter(({ at }) => at > this.now);
      for (const { answer, id } of due) this.calls.onAnswered(id, answer);
      if (this.calls.nextDeadline() <= this.now) this.calls.onTick();
      for (const answer of this.calls.takeAnswers()) answer();
      if (this.now >= end) return;
    }
  }

  get circuit(): string {
    const { queued = 0, state = "" } = this.calls.circuitOf("eu") ?? {};
    return `${state} ${queued}`;
  }
}

describe("manager selection of a gate", () => {
  it("sends new jobs to managers that accept jobs, and other requests to any live one (AD-19.16)", () => {
    const far = new Far();
    far.draining.add("m2");
    far.run(11_000);
    const submit = { kind: "submit" } as unknown as Extract<ClientRequest, { kind: "submit" }>;
    const askedOf = (message: ManagerMessage): ReadonlySet<string> => {
      const from = new Set<string>();
      for (let turn = 0; turn < 6; turn++) {
        far.calls.ask({ datacenter: "eu", manager: null, message }, (_, by) => from.add(by ?? ""));
        far.run(10);
      }
      return from;
    };
    expect(askedOf({ kind: "client", request: submit })).toEqual(new Set(["m1", "m3"]));
    expect(askedOf(MESSAGE)).toEqual(new Set(["m1", "m2", "m3"]));
    const [eu] = far.calls.views();
    expect(eu?.health.managers.map(({ decision, label }) => `${decision} ${label}`)).toEqual([
      ...["route healthy", "drain busy", "route healthy"],
    ]);
    for (const one of ["m1", "m3"]) far.draining.add(one);
    far.run(11_000);
    // No manager accepts jobs: one of them is asked anyway, and refuses itself.
    expect(askedOf({ kind: "client", request: submit }).size).toBeGreaterThan(0);
    expect(far.calls.isDegraded("eu")).toBe(true);
  });

  it("rotates over the managers, or uses the named one while it is connected", () => {
    const far = new Far();
    for (let i = 0; i < 6; i++) far.ask(null);
    expect(new Set(far.asked.slice(0, 3)).size).toBe(3);
    expect(far.asked.slice(0, 3)).toEqual(far.asked.slice(3));
    far.ask("m2");
    expect(far.asked.at(-1)).toBe("m2");
    far.link("m2", false);
    far.ask("m2");
    expect(far.asked.at(-1)).not.toBe("m2");
  });

  it("skips a manager after four unanswered requests in a row, until it answers a probe (HFD-11)", () => {
    const far = new Far();
    far.silent.add("m2");
    // The others answer in the meantime, so the datacenter is not failing.
    for (let i = 0; i < 4; i++) {
      far.ask("m2");
      far.run(1_000);
      far.ask("m1");
      far.run(2_100);
    }
    expect(far.calls.views()[0]?.pool).toMatchObject({
      ...{ evicted: ["m2"], evictions: { consecutive_failures: 1 } },
    });
    expect(far.circuit).toBe("CLOSED 0");
    far.asked.length = 0;
    for (let i = 0; i < 6; i++) far.ask(null);
    expect(far.asked).not.toContain("m2");
    far.silent.clear();
    far.run(66_000);
    expect(far.calls.views()[0]?.pool.evicted).toEqual([]);
  });

  it("keeps the circuit closed when one manager disconnects with open requests", () => {
    const far = new Far();
    far.silent.add("m1");
    const answers = Array.from({ length: 10 }, () => far.ask("m1"));
    far.link("m1", false);
    far.run(GATE_DEFAULTS.askTimeoutMs);
    expect(answers.flat()).toEqual(Array(10).fill("none"));
    expect(far.circuit).toBe("CLOSED 0");
  });
});

describe("the circuit to a datacenter", () => {
  const cut = (): Far => {
    const far = new Far();
    for (const manager of ["m1", "m2", "m3"]) far.silent.add(manager);
    for (let i = 0; i < 5; i++) far.ask(null);
    far.run(GATE_DEFAULTS.askTimeoutMs);
    return far;
  };

  it("opens after five failures: requests that may wait are queued, others fail at once", () => {
    const far = cut();
    expect(far.circuit).toBe("OPEN 0");
    expect(far.logged).toEqual(["CircuitOpened: Circuit to eu OPENED after 5 failures"]);
    expect(far.calls.hindrance("eu")).toBe("its circuit is OPEN after 5 failures");
    const observed = far.ask(null);
    const answers = far.ask(null, () => true);
    far.run(100);
    expect([observed, answers]).toEqual([["none"], []]);
    expect(far.circuit).toBe("OPEN 1");
  });

  it("is probed by its timer, and replays queued requests once and in order within 60 s (CB-4, CB-5, CB-7)", () => {
    const far = cut();
    const answers = ["first", "second", "third"].map(() => far.ask(null, () => true));
    far.silent.clear();
    far.run(60_000);
    expect(answers.map(({ length }) => length)).toEqual([1, 1, 1]);
    expect(answers.flat()).not.toContain("none");
    expect(far.circuit).toBe("CLOSED 0");
    expect(far.logged.slice(1)).toEqual([
      "CircuitClosed: Circuit to eu CLOSED after recovery",
      "CircuitReplayed: Replayed 3 queued operations to eu",
    ]);
  });

  it("is probed at once when the datacenter answers a capacity request", () => {
    const far = cut();
    const answers = far.ask(null, () => true);
    far.silent.clear();
    far.calls.probe("eu", () => undefined);
    far.run(100);
    expect([answers.length, far.circuit]).toEqual([1, "CLOSED 0"]);
  });

  it("is probed at once when a connection is established, and stays open if the probe fails", () => {
    const far = cut();
    for (const manager of ["m1", "m2", "m3"]) far.link(manager, false);
    const answers = far.ask(null, () => true);
    far.link("m1", true);
    expect(far.circuit).toBe("HALF_OPEN 1");
    far.run(GATE_DEFAULTS.askTimeoutMs);
    expect(far.circuit).toBe("OPEN 1");
    far.silent.clear();
    far.link("m2", true);
    far.run(100);
    expect([answers, far.circuit]).toEqual([[expect.any(String)], "CLOSED 0"]);
  });

  it("drops requests that are no longer wanted, and reports expired ones", () => {
    const far = cut();
    let isWanted = true;
    const left = far.ask(null, () => isWanted);
    isWanted = false;
    far.silent.clear();
    far.messages.length = 0;
    far.run(31_000);
    // Probes closed the circuit; the remaining requests were not among them.
    const sent = far.messages.filter((message) => message === MESSAGE);
    expect([left, far.circuit, sent]).toEqual([["none"], "CLOSED 0", []]);
    const late = cut();
    const expired = late.ask(null, () => true);
    late.run(59_000);
    expect(expired).toEqual([]);
    late.run(2_000);
    expect(expired).toEqual(["none"]);
  });

  it("counts a request without any connected manager as a failure", () => {
    const far = new Far(["m1"]);
    far.link("m1", false);
    const answers = Array.from({ length: 5 }, () => far.ask(null));
    far.run(0);
    expect([answers.flat(), far.circuit]).toEqual([Array(5).fill("none"), "OPEN 0"]);
    expect(far.calls.hindrance("eu")).toBe("none of its managers can be reached");
  });
});

describe("a job for two datacenters, one of them unreachable", () => {
  const BOTH = ["dc1", "dc2"];

  it("is accepted, goes to the other at once, and runs in both when it returns (CB-6, CB-7)", () => {
    const world = new GateWorld({ datacenters: BOTH, gates: 3, loadMs: 2_000 });
    world.cut.add("dc2");
    const job = world.submit({}, { datacenters: BOTH });
    world.run(4_000);
    expect(world.logs.join()).toContain("CircuitOpened");
    // The leading gate is lost with its queue: another one sends from the ledger.
    world.kill(world.leaderOf(job));
    world.run(4_000);
    world.cut.delete("dc2");
    expect(world.end(job).status).toBe("COMPLETED");
    expect(world.calls()).toBeGreaterThan(0);
  });
});
