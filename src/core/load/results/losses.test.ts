import { describe, expect, it } from "vitest";
import { ERROR_KINDS } from "../../../protocols/protocol.ts";
import { manifest } from "../job/testing/manifest.ts";
import { StatsRecorder } from "../stats/stats-recorder.ts";
import { Losses } from "./losses.ts";
import { WorkflowAggregate } from "./workflow-aggregate.ts";

const HOUR_MS = 3_600_000;

/** A core of a worker that made ten calls a second, given up after 400 ms of a plan of a second. */
function lost() {
  const shop = new WorkflowAggregate(manifest("shop", {}), ERROR_KINDS);
  shop.started([0, 1], 0);
  const losses = new Losses();
  const lose = (core: number, measuredMs: number): void => {
    shop.coreLost(core);
    losses.add({
      ...{ core, what: `worker w1 was lost with core ${core}`, worker: "w1", isUnknown: false },
      ...{ wallMs: Number.NaN, atSeconds: 1, lostAtMs: 1_200 },
      figures: {
        ...{ workflow: "shop", users: 1, requestsCounted: 0, measuredMs, noticedMs: 1_000 },
        ...{ requestsUnseen: 3, requestsPerSecondMax: 10, isUnbounded: false },
      },
    });
  };
  lose(0, 400);
  const list = (nowMs: number) => losses.list(() => [shop], nowMs);
  const notCounted = (nowMs: number): number | null => list(nowMs)[0]?.requestsNotCounted ?? null;
  return { list, lose, losses, notCounted, shop };
}

describe("the bound for a lost core", () => {
  it("grows from when it was noticed, to the end of its plan and of its calls in flight", () => {
    const { notCounted } = lost();
    const planLeftMs = 1_000 - 400 + 5_000;
    expect([notCounted(1_000), notCounted(3_000)]).toEqual([3, 3 + 20]);
    expect(notCounted(HOUR_MS)).toBe(3 + planLeftMs / 100);
  });

  it("grows until the core is known to be over, also when that was before it was noticed", () => {
    const { losses, notCounted } = lost();
    losses.over(0, 2_000);
    expect(notCounted(HOUR_MS)).toBe(3 + 10);
    losses.over(0, 500);
    expect(notCounted(HOUR_MS)).toBe(3);
  });

  it("grows by what the clock of a run may be behind since the loss (1000152)", () => {
    const { losses, notCounted } = lost();
    losses.over(0, 2_000);
    losses.behind(700);
    expect(notCounted(HOUR_MS)).toBe(3 + 17);
  });

  it("is unknown where the run was cut short", () => {
    const { losses, notCounted } = lost();
    losses.isCutShort = true;
    expect(notCounted(3_000)).toBeNull();
  });
});

it("misses no more for a core lost before its first report than for the one it replaced", () => {
  const { list, lose, losses, shop } = lost();
  losses.joined(2, 0, "w2");
  lose(2, 0);
  losses.joined(3, 2, "w3");
  lose(3, 0);
  tell(shop, 1, 1_000);
  expect(list(HOUR_MS).map(({ missingMs }) => missingMs)).toEqual([600, 600, 600]);
});

/** Reports the progress of a core. */
function tell(workflow: WorkflowAggregate, core: number, measuredMs: number): void {
  const recorder = new StatsRecorder({ errorKinds: ERROR_KINDS.length, corrected: false });
  recorder.seal(measuredMs / 100, { users: 1, target: 1, cpuMs: 1, lagMsMax: 1 });
  const moment = { measuredMs, warmingUp: false, target: 1, arrivalsWaiting: 0 };
  const vitals = { cpu: 0, residentBytes: 0, activeUsers: 1 };
  workflow.frame(core, recorder.frame(moment, true), vitals, measuredMs);
}
