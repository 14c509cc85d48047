import { describe, expect, it } from "vitest";
import { formatMetrics } from "../../../host/control/prometheus.ts";
import { routingMetrics } from "../../../nodes/gate/routing-metrics.ts";
import type { Answered } from "./calls.ts";
import { DatacenterTable } from "./datacenters.ts";
import { GATE_DEFAULTS } from "./types.ts";

type Places = Readonly<Record<string, { readonly ms: number; readonly coresFree: number }>>;

/** Datacenters with one manager each that answers after this many milliseconds. */
class Far {
  now = 0;
  readonly options = { config: GATE_DEFAULTS };
  readonly #answers: { readonly at: number; readonly answer: () => void }[] = [];
  readonly #places: Places;
  readonly table: DatacenterTable;
  readonly logged: Readonly<Record<string, string | number>>[] = [];

  readonly #cores: number;

  constructor(places: Places, cores = 8) {
    this.#places = places;
    this.#cores = cores;
    const names = Object.keys(places);
    this.table = new DatacenterTable(
      this,
      names.map((name) => ({ name, managers: ["m1"] })),
    );
    for (const name of names) this.table.onReached(name);
  }

  /** Polled continuously. */
  readonly calls = {
    ...{ reachedIn: () => ["m1"], circuitOf: () => null, isDegraded: () => false },
    probe: (datacenter: string, done: Answered) => this.#probe(datacenter, done),
  };

  #probe(datacenter: string, done: Answered): void {
    const { coresFree = 0, ms = 0 } = this.#places[datacenter] ?? {};
    const answer = { coresFree, workers: 1, cores: this.#cores, jobsQueued: 0 };
    this.#answers.push({
      at: this.now + ms,
      answer: () => done({ kind: "capacity", ...answer }, "m1"),
    });
  }

  log(_level: string, event: string, fields: Readonly<Record<string, string | number>>): void {
    this.logged.push({ event, ...fields });
  }

  run(untilMs: number): void {
    for (; this.now < untilMs; this.now++) {
      this.table.onTick();
      const due = this.#answers.filter(({ at }) => at <= this.now);
      for (const one of due) {
        this.#answers.splice(this.#answers.indexOf(one), 1);
        one.answer();
      }
    }
  }
}

describe("routing order of a gate", () => {
  it("is by free cores at first, and by distance once it is known", () => {
    const far = new Far({ near: { ms: 5, coresFree: 4 }, far: { ms: 80, coresFree: 6 } });
    far.run(2_000);
    expect(far.table.routingOrder(["near", "far"], [])).toEqual(["far", "near"]);
    far.run(60_000);
    expect(far.table.routingOrder(["near", "far"], [])).toEqual(["near", "far"]);
  });

  it("puts a datacenter that failed a job last, until it accepts one", () => {
    const far = new Far({ near: { ms: 50, coresFree: 8 }, other: { ms: 60, coresFree: 8 } });
    far.run(30_000);
    far.table.failed("near");
    expect(far.table.routingOrder(["near", "other"], [])).toEqual(["other", "near"]);
    far.table.succeeded("near");
    far.run(70_000);
    expect(far.table.routingOrder(["near"], [])).toEqual(["near"]);
  });

  it("is logged and counted under the names of AD-36", () => {
    const far = new Far({ near: { ms: 5, coresFree: 4 }, far: { ms: 80, coresFree: 6 } });
    far.run(2_000);
    far.table.routingOrder(["near", "far"], []);
    far.run(10_500);
    // "near" is better now, but "far" is in hold-down.
    far.table.routingOrder(["near", "far"], []);
    far.run(60_000);
    far.table.routingOrder(["near", "far"], []);
    far.table.decided("job-1", "near", null);
    far.table.failed("near");
    far.table.routingOrder(["far"], []);
    far.table.decided("job-1", "far", "near");
    expect(far.logged.map(({ event }) => event)).toEqual([
      ...["DatacenterReachability", "DatacenterReachability"],
      ...["RoutingSwitch", "RoutingDecision", "RoutingCooldown", "RoutingDecision"],
    ]);
    expect(far.logged[2]).toMatchObject({ from: "far", to: "near", reason: "better" });
    expect(far.logged[3]).toMatchObject({ job: "job-1", datacenter: "near", bucket: "healthy" });
    const text = formatMetrics(routingMetrics(far.table.routing));
    for (const line of [
      'hyperscale_routing_decisions_total{bucket="healthy",reason="better"} 1',
      'hyperscale_routing_switch_total{reason="better"} 1',
      "hyperscale_routing_hold_down_blocks_total 1",
      'hyperscale_routing_fallback_used_total{from_dc="near",to_dc="far"} 1',
      'hyperscale_routing_score{dc_id="far"} ',
      'hyperscale_routing_score_component{dc_id="far",component="rtt_ucb"} ',
      'hyperscale_routing_score_component{dc_id="far",component="load"} ',
      'hyperscale_routing_score_component{dc_id="far",component="quality"} 1',
    ])
      expect(text).toContain(line);
  });

  it("counts a full datacenter as busy until a twentieth of its cores is free", () => {
    const places = { a: { ms: 20, coresFree: 0 }, b: { ms: 30, coresFree: 40 } };
    const far = new Far(places, 100);
    const first = (untilMs: number): string | undefined => {
      far.run(untilMs);
      return far.table.routingOrder(["a", "b"], [])[0];
    };
    expect(first(30_000)).toBe("b");
    places.a.coresFree = 4;
    expect(first(90_000)).toBe("b");
    places.a.coresFree = 100;
    expect(first(150_000)).toBe("a");
  });
});
