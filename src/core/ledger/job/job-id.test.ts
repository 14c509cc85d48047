import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { HLC_WALL_MS_MAX } from "../../base/hlc.ts";
import { Random } from "../../base/random.ts";
import { formatJobId, JobIdMint, parseJobId } from "./job-id.ts";

describe("job ids", () => {
  it("read as region, time, gate and sequence", () => {
    const id = new JobIdMint("use1", "gate42").next(1_704_931_200_000);
    expect(id).toBe("use1-1704931200000-gate42-00001");
    expect(parseJobId(id)).toEqual({
      region: "use1",
      timestampMs: 1_704_931_200_000,
      gate: "gate42",
      sequence: 1,
    });
  });

  it.each([
    "",
    "use1",
    "US-1-g-00001",
    "use1--g-00001",
    "use1-01-g-00001",
    "use1-1-g-1",
    "use1-1-g-000001",
    "use1-9999999999999999-g-00001",
    "use1-1-g-00001\n",
  ])("refuse %j", (text) => {
    expect(parseJobId(text)).toBeNull();
  });

  it("are given back by format and parse", () => {
    const name = fc.stringMatching(/^[a-z0-9]{1,16}$/);
    const parts = fc.record({
      region: name,
      timestampMs: fc.nat({ max: HLC_WALL_MS_MAX }),
      gate: name,
      sequence: fc.nat(99_999),
    });
    fc.assert(
      fc.property(parts, (one) => {
        expect(parseJobId(formatJobId(one))).toEqual(one);
      }),
    );
  });

  it("of one gate sort by time while their times have one width (LEDG-3)", () => {
    const mint = new JobIdMint("use1", "g");
    const ids = Array.from({ length: 50 }, (_, at) => mint.next(1_700_000_000_000 + 3 * at));
    expect([...ids].sort()).toEqual(ids);
  });

  it("take the next millisecond when one is full", () => {
    const mint = new JobIdMint("use1", "g");
    mint.observe("use1-500-g-99998");
    expect([mint.next(500), mint.next(500), mint.next(500)]).toEqual([
      "use1-500-g-99999",
      "use1-501-g-00001",
      "use1-501-g-00002",
    ]);
  });

  it("pass over what other gates minted, and what is no id", () => {
    const mint = new JobIdMint("use1", "g");
    for (const id of ["use1-900-h-00007", "euw1-900-g-00007", "nonsense"]) mint.observe(id);
    expect(mint.next(5)).toBe("use1-5-g-00001");
  });

  it("are unique: a million from three gates with clock steps and restarts (LEDG-1)", {
    timeout: 60_000,
  }, () => {
    const random = new Random("ids");
    const gates = ["g1", "g2", "g3"];
    const mints = gates.map((gate) => new JobIdMint("use1", gate));
    const logs: string[] = ["", "", ""];
    const walls = [1e12, 1e12, 1e12];
    const ids = new Set<string>();
    for (let i = 0; i < 1_000_000; i++) {
      const at = i % 3;
      const step = random.below(1_000);
      // Mostly the same or the next millisecond, now and then a step of an hour either way.
      if (step === 0) walls[at] = (walls[at] ?? 0) + (random.below(7_200_000) - 3_600_000);
      else if (step < 100) walls[at] = (walls[at] ?? 0) + 1;
      if (step === 1) {
        const restarted = new JobIdMint("use1", gates[at] as string);
        restarted.observe(logs[at] as string);
        mints[at] = restarted;
      }
      const id = (mints[at] as JobIdMint).next(walls[at] as number);
      logs[at] = id;
      ids.add(id);
    }
    expect(ids.size).toBe(1_000_000);
  });
});
