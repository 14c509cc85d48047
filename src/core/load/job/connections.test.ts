import { expect, it } from "vitest";
import { mostOnOneCore, mostToOneTarget } from "./connections.ts";
import { manifest } from "./testing/manifest.ts";

const load = (vus: number) => ({
  load: { kind: "vus", stages: [{ durationMs: 1_000, from: vus, to: vus }] } as const,
  connectionsMax: vus,
});
const to = (target: string | null, perUser = 1) => ({ to: target, perUser, perCore: 0 });

it("are counted per target: two ports of one workflow are two targets", () => {
  const one = manifest("w", { ...load(15_000), targets: [to("a:1"), to("a:2")] });
  expect(mostToOneTarget([one], 2)).toMatchObject({ connections: 15_000 });
});

it("are summed over workflows that run at the same time, and not over layers", () => {
  const a = manifest("a", { ...load(20_000), targets: [to("a:1")] });
  const b = manifest("b", { ...load(20_000), targets: [to("a:1")] });
  expect(mostToOneTarget([a, b], 2)).toEqual({ to: "a:1", connections: 40_000 });
  expect(mostToOneTarget([a, { ...b, dependsOn: ["a"] }], 2).connections).toBe(20_000);
});

it("of shared pools count per core, and targets known only to code are judged by themselves", () => {
  const pool = manifest("p", { ...load(5), targets: [{ to: "a:1", perUser: 0, perCore: 256 }] });
  expect(mostToOneTarget([pool], 4)).toEqual({ to: "a:1", connections: 1_024 });
  const code = manifest("c", { ...load(3_000), targets: [to(null, 2)] });
  expect(mostToOneTarget([pool, code], 4)).toEqual({ to: null, connections: 6_000 });
});

it("on one core are those of a workflow over its cores", () => {
  const a = manifest("a", load(20_000));
  expect(mostOnOneCore([a], 2)).toBe(10_000);
  expect(mostOnOneCore([a, manifest("b", load(4))], 2)).toBe(20_000);
});
