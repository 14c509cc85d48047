/** Each index is assigned once, and requests of a core may be late or repeated. */

import { describe, expect, it } from "vitest";
import { manifest } from "../../load/job/testing/manifest.ts";
import { type BlockStep, GivenBlocks } from "./given-blocks.ts";

const SHARED = { kind: "shared", vus: 2, iterations: 5, durationMsMax: 60_000 } as const;

function grant(core: number, request: number): BlockStep {
  const lease = { name: "iterations", size: 1, workflow: "shop", execution: 7 };
  return { kind: "grant", core, request, ...lease };
}

describe("blocks assigned to cores", () => {
  it("are the same for a repeated request", () => {
    const blocks = new GivenBlocks([manifest("shop", { load: SHARED })]);
    for (const core of [0, 1, 0]) blocks.give(grant(core, 1));
    expect(blocks.of(grant(0, 1))).toMatchObject({ from: 0, to: 1 });
    expect(blocks.of(grant(1, 1))).toMatchObject({ from: 1, to: 2 });
  });

  it("are not assigned to a request superseded by a later one", () => {
    const blocks = new GivenBlocks([manifest("shop", { load: SHARED })]);
    for (const request of [1, 2, 1, 2]) expect(blocks.give(grant(0, request))).toBe(true);
    expect(blocks.of(grant(0, 1))).toBe(null);
    expect(blocks.of(grant(0, 2))).toMatchObject({ from: 1, to: 2 });
    blocks.give(grant(1, 1));
    expect(blocks.of(grant(1, 1))).toMatchObject({ from: 2, to: 3 });
  });
});
