import { describe, expect, it } from "vitest";
import type { ExtensionRequest } from "../extension-messages.ts";
import { EXTENSION_DEFAULTS, Extensions, grantMs } from "./extensions.ts";

const ask = (number: number, progress: number): ExtensionRequest => ({
  ...{ number, progress, reason: "long_workflow", estimatedMs: 60_000, running: 1 },
});

describe("extensions for a worker (AD-26)", () => {
  it.each([
    [0, 15_000, 15_000, 4],
    [1, 7_500, 22_500, 3],
    [2, 3_750, 26_250, 2],
    [3, 1_875, 28_125, 1],
    [4, 1_000, 29_125, 0],
  ])(
    "grants half of the previous grant, as tabled: number %i (AD-26.2)",
    (count, ms, sum, left) => {
      expect(grantMs(count, EXTENSION_DEFAULTS)).toBe(ms);
      const extensions = new Extensions();
      extensions.standsStill(0);
      let answer = extensions.request(ask(0, 0), 20_000, false);
      for (let more = 1; more <= count; more++)
        answer = extensions.request(ask(more, more / 10), 20_000, false);
      expect(answer).toMatchObject({ granted: true, extensionMs: ms, remaining: left });
      expect(extensions.totalMs).toBe(sum);
    },
  );

  it("denies the sixth request, and keeps the total of a series below 29.125 s", () => {
    const extensions = new Extensions();
    for (let number = 0; number < 5; number++)
      expect(extensions.request(ask(number, number / 10), 0, false).granted).toBe(true);
    const denied = extensions.request(ask(5, 0.9), 0, false);
    const denial = "max_extensions_exceeded";
    expect(denied).toMatchObject({ granted: false, extensionMs: 0, denial, remaining: 0 });
    expect(extensions.totalMs).toBe(29_125);
  });

  it("extends the deadline, not the current time: 30 s, 45 s, 52.5 s (AD-26.5)", () => {
    const extensions = new Extensions();
    extensions.standsStill(0);
    expect(extensions.deadline).toBe(30_000);
    expect(extensions.request(ask(0, 0.1), 10_000, false).deadlineMs).toBe(35_000);
    expect(extensions.deadline).toBe(45_000);
    extensions.request(ask(1, 0.2), 44_000, false);
    expect(extensions.deadline).toBe(52_500);
  });

  it("counts from now without a known deadline (AD-26.6)", () => {
    const extensions = new Extensions();
    expect(extensions.request(ask(0, 0), 7_000, false).deadlineMs).toBe(45_000);
  });

  it("requires no progress at first, and some from then on (AD-26.3, AD-26.4)", () => {
    const extensions = new Extensions();
    expect(extensions.request(ask(0, 0), 0, false).granted).toBe(true);
    const same = extensions.request(ask(1, 0), 0, false);
    expect(same).toMatchObject({ granted: false, denial: "no_progress", deadlineMs: 45_000 });
    expect(extensions.request(ask(2, 0.01), 0, false).granted).toBe(true);
    expect(extensions.request(ask(3, 0.005), 0, false).denial).toBe("no_progress");
  });

  it("denies a suspect worker, and one whose deadline has passed", () => {
    const extensions = new Extensions();
    extensions.standsStill(0);
    expect(extensions.request(ask(0, 0), 1_000, true).denial).toBe("suspect");
    expect(extensions.request(ask(1, 0), 30_000, false).granted).toBe(true);
    expect(extensions.request(ask(2, 0.5), 45_001, false).denial).toBe("suspect");
  });

  it.each([-0.01, 1.01, Number.NaN])("rejects a progress of %d (AD-26.11)", (progress) => {
    expect(new Extensions().request(ask(0, progress), 0, false).denial).toBe("invalid");
  });

  it("reports the first matching reason as a code and a sentence (AD-26.8)", () => {
    const extensions = new Extensions({ ...EXTENSION_DEFAULTS, grantsMax: 2 });
    extensions.standsStill(0);
    const granted = extensions.request(ask(0, 0.4), 1_000, false);
    expect([granted.denial, granted.message]).toEqual(["", ""]);
    // The worker has not advanced and is silent.
    expect(extensions.request(ask(1, 0.25), 2_000, true)).toMatchObject({
      denial: "no_progress",
      message: "nothing has advanced since the last grant: 0.4 then, 0.25 now",
    });
    expect(extensions.request(ask(2, 0.5), 2_000, true)).toMatchObject({
      denial: "suspect",
      message: "its time is up already",
    });
    expect(extensions.request(ask(3, 0.5), 2_000, false).granted).toBe(true);
    // No grant is left, and the worker has not advanced and is silent.
    expect(extensions.request(ask(4, 0.5), 3_000, true)).toMatchObject({
      denial: "max_extensions_exceeded",
      message: "it was given more time 2 times, which is all there is",
    });
    expect(extensions.request(ask(5, 7), 3_000, true)).toMatchObject({
      denial: "invalid",
      message: "progress is from 0 to 1, not 7",
    });
  });

  it("answers a repeated request as before", () => {
    const extensions = new Extensions();
    extensions.standsStill(0);
    const first = extensions.request(ask(0, 0), 20_000, false);
    expect(extensions.request(ask(0, 0), 21_000, false)).toBe(first);
    extensions.request(ask(1, 0.5), 22_000, false);
    expect(extensions.request(ask(0, 0), 23_000, false).denial).toBe("invalid");
    expect([extensions.count, extensions.deadline]).toEqual([2, 52_500]);
  });

  it("warns once in a series, when one grant is left (AD-26.12)", () => {
    const extensions = new Extensions();
    const warned = Array.from({ length: 5 }, (_, number) =>
      extensions.request(ask(number, number / 10), 0, false),
    ).map(({ isWarning }) => isWarning);
    expect(warned).toEqual([false, false, false, true, false]);
    extensions.recovers();
    expect(extensions.request(ask(9, 0), 0, false)).toMatchObject({
      granted: true,
      extensionMs: 15_000,
      isWarning: false,
    });
  });

  it("gives up after the deadline and the grace period, and not before", () => {
    const extensions = new Extensions();
    expect(extensions.evictAt()).toBe(null);
    extensions.standsStill(0);
    expect(extensions.evictAt()).toBe(40_000);
    extensions.request(ask(0, 0), 20_000, false);
    expect(extensions.evictAt()).toBe(55_000);
    extensions.advances();
    expect(extensions.evictAt()).toBe(null);
    extensions.standsStill(60_000);
    expect(extensions.evictAt()).toBe(100_000);
  });

  it("waits for the grace period after the last grant, unless requests are repeated (AD-26.12)", () => {
    const extensions = new Extensions({ ...EXTENSION_DEFAULTS, grantsMax: 1 });
    extensions.standsStill(0);
    extensions.request(ask(0, 0), 29_000, false);
    expect(extensions.request(ask(1, 0.5), 44_000, false).graceMs).toBe(10_000);
    expect(extensions.evictAt()).toBe(55_000);
    expect(extensions.request(ask(2, 0.6), 45_500, false).graceMs).toBe(8_500);
    extensions.request(ask(3, 0.7), 46_000, false);
    expect(extensions.evictAt()).toBe(45_000);
  });
});
