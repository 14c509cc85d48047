import { describe, expect, it } from "vitest";
import { decisionOf, isLive, isSystemic, labelOf, PROGRESS_BANDS, progressOf } from "./health.ts";

/** Expected table: live, ready, progress, decision, label. */
const TABLE = `
yes yes idle     route       healthy
yes yes normal   route       healthy
yes yes slow     investigate slow
yes yes degraded investigate slow
yes yes stuck    drain       stuck
yes no  idle     drain       busy
yes no  normal   drain       busy
yes no  slow     drain       degraded
yes no  degraded drain       degraded
yes no  stuck    drain       stuck
no  yes idle     evict       suspect
no  yes normal   evict       suspect
no  yes slow     evict       suspect
no  yes degraded evict       suspect
no  yes stuck    evict       suspect
no  no  idle     evict       suspect
no  no  normal   evict       suspect
no  no  slow     evict       suspect
no  no  degraded evict       suspect
no  no  stuck    evict       suspect
`;

const rows = TABLE.trim()
  .split("\n")
  .map((line) => line.split(/ +/) as [string, string, string, string, string]);

describe("three signals of health (AD-19)", () => {
  it("has a row for each of the 2 x 2 x 5 combinations", () => {
    expect(new Set(rows.map((row) => row.slice(0, 3).join())).size).toBe(20);
  });

  it.each(rows)("live %s, ready %s, %s: %s", (live, ready, band, decision, label) => {
    const progress = PROGRESS_BANDS.find((one) => one === band) ?? "idle";
    const signals = { live: live === "yes", ready: ready === "yes", progress };
    expect(decisionOf({ ...signals, isOverdue: false })).toBe(decision);
    expect(labelOf({ ...signals, isOverdue: false })).toBe(label);
    const late = decisionOf({ ...signals, isOverdue: true });
    expect(late).toBe(band === "stuck" ? "evict" : decision);
  });

  it("is not live after 30 s, or after the third miss (AD-19.1)", () => {
    expect(isLive(29_999, 0)).toBe(true);
    expect(isLive(30_000, 0)).toBe(false);
    expect(isLive(0, 2)).toBe(true);
    expect(isLive(0, 3)).toBe(false);
  });

  it.each([
    [0.8, "normal"],
    [0.799, "slow"],
    [0.3, "slow"],
    [0.299, "degraded"],
    [0.001, "degraded"],
    [0, "stuck"],
  ] as const)("calls a share of %d of the usual %s (AD-19.3)", (share, band) => {
    expect(progressOf(true, share, 1)).toBe(band);
    expect(progressOf(false, share, 1)).toBe("idle");
    expect(progressOf(true, share, 0)).toBe("normal");
  });

  it.each([
    [1, 1, false],
    [2, 2, false],
    [2, 3, true],
    [3, 6, false],
    [4, 6, true],
    [2, 10, false],
    [6, 10, true],
  ])("with %i failing of %i is systemic: %s (AD-19.31, AD-19.32)", (failing, tracked, held) => {
    expect(isSystemic(failing, tracked)).toBe(held);
  });
});
