import { expect, it } from "vitest";
import { nodeId } from "../../base/ids.ts";
import { BUNDLE, submission } from "../manager/testing/world.ts";
import { ANYWHERE } from "../messages.ts";
import { ClientRequests } from "./client-requests.ts";
import { GateContext } from "./context.ts";
import { GATE_DEFAULTS, type GateEffect } from "./types.ts";

/** Answer of a gate that leads these jobs, all queued, to a submission of a tenant. */
function submitted(
  waiting: readonly string[],
  tenant: string,
  isKnown = false,
): readonly GateEffect[] {
  const context = new GateContext(
    {
      ...{ self: nodeId("g1"), gates: [nodeId("g1")], boot: "b", version: "1.0.0" },
      ...{ errorKinds: [], addresses: {}, config: GATE_DEFAULTS },
      datacenters: [{ name: "dc1", managers: ["m1"] }],
    },
    { job: () => null, jobs: () => [], openJobs: () => [], knows: () => isKnown },
  );
  context.calls.onLink("dc1", "m1", true);
  context.blobs.add(BUNDLE);
  const requests = new ClientRequests(context, {
    ...{ leaderOf: () => null, waiting: () => waiting },
  });
  const asked = { submission: submission({ tenant }), routing: ANYWHERE };
  requests.take(1, { kind: "submit", key: "key", ...asked });
  return context.takeEffects();
}

it("reserves queue space for other tenants when one has filled its share", () => {
  const waiting = Array<string>(900).fill("greedy");
  expect(submitted(waiting, "greedy")).toMatchObject([
    { kind: "answer", answer: { kind: "refused", reason: "retry", retryAfterMs: 2_000 } },
  ]);
  const isTaken = (effects: readonly GateEffect[]): boolean =>
    effects.length > 0 && effects.every(({ kind }) => kind !== "answer");
  expect(isTaken(submitted(waiting, "other"))).toBe(true);
  expect(isTaken(submitted(waiting, "greedy", true))).toBe(true);
  expect(isTaken(submitted(waiting.slice(1), "greedy"))).toBe(true);
});
