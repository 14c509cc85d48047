import { describe, expect, it } from "vitest";
import { ANYWHERE, type Routing } from "../messages.ts";
import { chooseDatacenters } from "./choice.ts";

/** Free cores of eight, and queued jobs. */
function room(name: string, coresFree: number, jobsQueued: number) {
  return { name, cores: 8, coresFree, jobsQueued };
}

function chosen(
  routing: Routing,
  cores: number,
  rooms: readonly ReturnType<typeof room>[],
): readonly string[] | null {
  const choice = chooseDatacenters(routing, cores, {
    ...{ rooms, avoided: new Map(), now: 0, routingOrder: (names: readonly string[]) => names },
  });
  return choice.kind === "wait" ? null : choice.datacenters.map(({ name }) => name);
}

describe("a job without free cores", () => {
  it.each([
    ["waits where no other job is queued for cores", [room("a", 0, 0)], 1, null],
    ["joins the queue of a datacenter", [room("a", 0, 1)], 1, ["a"]],
    ["joins the shortest queue", [room("a", 0, 9), room("b", 0, 2)], 1, ["b"]],
    [
      "goes where cores are free, whatever is queued there",
      [room("a", 0, 1), room("b", 1, 9)],
      1,
      ["b"],
    ],
    ["does not join a queue that can never provide enough cores", [room("a", 0, 1)], 9, null],
  ])("%s", (_, rooms, cores, names) => {
    expect(chosen(ANYWHERE, cores, rooms)).toEqual(names);
  });

  it("joins the queue of a datacenter that it names", () => {
    const routing = { ...ANYWHERE, datacenters: ["a"] };
    expect(chosen(routing, 1, [room("a", 0, 3), room("b", 8, 0)])).toEqual(["a"]);
    expect(chosen(routing, 1, [room("a", 0, 0), room("b", 8, 0)])).toBeNull();
  });

  it("waits with the reason why free cores of a recently failed datacenter are not used", () => {
    const avoided = new Map([["a", { why: "its tenant has too many", until: 1_000 }]]);
    const choose = (now: number) =>
      chooseDatacenters(ANYWHERE, 1, {
        ...{
          rooms: [room("a", 2, 0), room("b", 0, 0)],
          avoided,
          now,
          routingOrder: (names) => names,
        },
      });
    expect(choose(999)).toEqual({
      kind: "wait",
      reason:
        "it needs 1 free core in a datacenter; there are: a 2 of 8 (but its tenant has too many), b 0 of 8",
    });
    expect(choose(1_000)).toMatchObject({ kind: "chosen" });
  });

  it("waits with the total of cores, and with a hint if there can never be enough", () => {
    const choose = (cores: number) =>
      chooseDatacenters(ANYWHERE, cores, {
        ...{ rooms: [room("a", 0, 0)], avoided: new Map(), now: 0, routingOrder: (names) => names },
      });
    const text = "free cores in a datacenter; there are: a 0 of 8";
    expect(choose(8)).toEqual({ kind: "wait", reason: `it needs 8 ${text}` });
    expect(choose(9)).toEqual({
      kind: "wait",
      reason: `it needs 9 ${text}; they never have so many: add workers, or ask for fewer cores`,
    });
  });
});
