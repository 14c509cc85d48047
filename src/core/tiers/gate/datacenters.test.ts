import { describe, expect, it } from "vitest";
import { DatacenterTable } from "./datacenters.ts";
import { GATE_DEFAULTS, type ManagerAnswer } from "./types.ts";

type Places = Readonly<Record<string, { readonly ms: number; readonly coresFree: number }>>;

/** Datacenters with one manager each that answers after so many milliseconds. */
class Far {
  now = 0;
  readonly options = { config: GATE_DEFAULTS };
  readonly #answers: { readonly at: number; readonly answer: () => void }[] = [];
  readonly #places: Places;
  readonly table: DatacenterTable;

  constructor(places: Places) {
    this.#places = places;
    const names = Object.keys(places);
    this.table = new DatacenterTable(
      this,
      names.map((name) => ({ name, managers: ["m1"] })),
    );
    for (const name of names) this.table.onLink(name, "m1", true);
  }

  ask(
    datacenter: string,
    _manager: string,
    _message: unknown,
    done: (answer: ManagerAnswer | null) => void,
  ): void {
    const { coresFree = 0, ms = 0 } = this.#places[datacenter] ?? {};
    const answer = { kind: "capacity", workers: 1, cores: 8, coresFree, jobsQueued: 0 } as const;
    this.#answers.push({ at: this.now + ms, answer: () => done(answer) });
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

describe("the order in which a gate asks datacenters", () => {
  it("is by free cores at first, and by distance once it is known", () => {
    const far = new Far({ near: { ms: 5, coresFree: 4 }, far: { ms: 80, coresFree: 6 } });
    far.run(2_000);
    expect(far.table.inOrder(["near", "far"], [])).toEqual(["far", "near"]);
    far.run(60_000);
    expect(far.table.inOrder(["near", "far"], [])).toEqual(["near", "far"]);
  });

  it("puts one last that has failed a job, until it takes one", () => {
    const far = new Far({ near: { ms: 50, coresFree: 8 }, other: { ms: 60, coresFree: 8 } });
    far.run(30_000);
    far.table.failed("near");
    expect(far.table.inOrder(["near", "other"], [])).toEqual(["other", "near"]);
    far.table.succeeded("near");
    far.run(70_000);
    expect(far.table.inOrder(["near"], [])).toEqual(["near"]);
  });
});
