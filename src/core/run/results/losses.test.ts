import { describe, expect, it } from "vitest";
import { ERROR_KINDS } from "../../../protocols/protocol.ts";
import { manifest } from "../job/testing/manifest.ts";
import { Losses } from "./losses.ts";
import { WorkflowAggregate } from "./workflow-aggregate.ts";

const HOUR_MS = 3_600_000;

/** A core of a worker that made ten calls a second, given up after 400 ms of a plan of a second. */
function lost(): {
  readonly losses: Losses;
  readonly notCounted: (nowMs: number) => number | null;
} {
  const shop = new WorkflowAggregate(manifest("shop", {}), ERROR_KINDS);
  shop.started([0, 1], 0);
  const losses = new Losses();
  losses.add({
    ...{ core: 0, what: "worker w1 was lost with core 0", worker: "w1", isUnknown: false },
    ...{ wallMs: Number.NaN, atSeconds: 1, lostAtMs: 1_200 },
    figures: {
      ...{ workflow: "shop", users: 1, requestsCounted: 0, measuredMs: 400, noticedMs: 1_000 },
      ...{ requestsUnseen: 3, requestsPerSecondMax: 10, isUnbounded: false },
    },
  });
  const notCounted = (nowMs: number): number | null =>
    losses.list(() => [shop], nowMs)[0]?.requestsNotCounted ?? null;
  return { losses, notCounted };
}

describe("what a lost core may have made", () => {
  it("grows from when it was noticed, to the end of its plan and of what it had under way", () => {
    const { notCounted } = lost();
    const planLeftMs = 1_000 - 400 + 5_000;
    expect([notCounted(1_000), notCounted(3_000)]).toEqual([3, 3 + 20]);
    expect(notCounted(HOUR_MS)).toBe(3 + planLeftMs / 100);
  });

  it("grows until it is known to be over, also when that was before it was noticed", () => {
    const { losses, notCounted } = lost();
    losses.over(0, 2_000);
    expect(notCounted(HOUR_MS)).toBe(3 + 10);
    losses.over(0, 500);
    expect(notCounted(HOUR_MS)).toBe(3);
  });

  it("is more by what the clock of a run may be behind since it was lost (1000152)", () => {
    const { losses, notCounted } = lost();
    losses.over(0, 2_000);
    losses.behind(700);
    expect(notCounted(HOUR_MS)).toBe(3 + 17);
  });

  it("is not known where the run was cut short", () => {
    const { losses, notCounted } = lost();
    losses.isCutShort = true;
    expect(notCounted(3_000)).toBeNull();
  });
});
