import fc from "fast-check";
import { expect, it } from "vitest";
import { LeaseAllocator } from "../core/load/execution/lease-allocator.ts";
import { IndexLease, ticketLease } from "./leases.ts";

const ROWS = "feed:users:";

/** A core whose user takes a ticket, then a row; grants arrive when the test says so. */
class OneCore {
  readonly tickets: IndexLease;
  readonly rows: IndexLease;
  readonly #asked: { readonly name: string; readonly size: number }[] = [];
  readonly #allocator: LeaseAllocator;
  #ticketTaken = false;
  done = 0;
  outcome: "goes on" | "over" | "without a row" = "goes on";

  constructor(allocator: LeaseAllocator, iterations: number, cores: number, block: number) {
    this.#allocator = allocator;
    const requester = {
      request: (name: string, size: number) => this.#asked.push({ name, size }),
    };
    this.tickets = ticketLease(iterations, cores, requester);
    this.rows = new IndexLease(
      `${ROWS}${iterations}`,
      { size: block, sizeMax: 4 * block },
      requester,
      0,
    );
    this.tickets.prefetch();
    this.rows.prefetch();
  }

  hear(): void {
    const asked = this.#asked.shift();
    if (asked === undefined) return;
    const { from, last, to } = this.#allocator.grant(asked.name, asked.size);
    const isRows = asked.name.startsWith(ROWS);
    (isRows ? this.rows : this.tickets).granted(from, to, last);
    if (!isRows) this.rows.expect(to - from);
  }

  work(): void {
    if (!this.#ticketTaken) {
      const ticket = this.tickets.take();
      if (ticket === "exhausted") this.outcome = "over";
      if (typeof ticket !== "number") return;
      this.#ticketTaken = true;
    }
    const row = this.rows.take();
    if (row === "exhausted") this.outcome = "without a row";
    if (typeof row !== "number") return;
    this.#ticketTaken = false;
    this.done++;
  }
}

it("leases as many rows as iterations: none stays unused on one core while another has none", () => {
  const coresOf = fc.integer({ min: 1, max: 4 });
  fc.assert(
    fc.property(
      ...[fc.integer({ min: 1, max: 40 }), coresOf, fc.integer({ min: 1, max: 5 })],
      fc.array(fc.nat(7), { maxLength: 300 }),
      (iterations, count, block, turns) => {
        const load = { kind: "shared", vus: count, iterations, durationMsMax: 1 } as const;
        const allocator = new LeaseAllocator({ load });
        const cores = Array.from(
          { length: count },
          () => new OneCore(allocator, iterations, count, block),
        );
        const turn = (core: OneCore | undefined, hears: boolean): void => {
          if (core?.outcome === "goes on") hears ? core.hear() : core.work();
        };
        for (const one of turns) turn(cores[(one >> 1) % count], one % 2 === 0);
        for (let rest = 0; rest < 4 * (iterations + 4); rest++)
          for (const core of cores) turn(core, rest % 2 === 0);
        expect(cores.map(({ outcome }) => outcome)).toEqual(cores.map(() => "over"));
        expect(cores.reduce((sum, { done }) => sum + done, 0)).toBe(iterations);
      },
    ),
  );
});
