import { describe, expect, it } from "vitest";
import { millis } from "../../base/brand.ts";
import { Undurable } from "./undurable.ts";

const AT = millis(0);

describe("Undurable", () => {
  it("exceeds the limit by count until enough records are durable", () => {
    const undurable = new Undurable();
    undurable.onAppended(60_000, 1, AT);
    expect(undurable.exceeds(1)).toBe(false);
    undurable.onAppended(1, 1, AT);
    expect(undurable.exceeds(1)).toBe(true);
    undurable.onDurable(1, AT);
    expect(undurable.exceeds(1)).toBe(false);
  });

  it("exceeds the limit by bytes, turn by turn", () => {
    const undurable = new Undurable();
    for (let turn = 0; turn < 3_000; turn++) {
      undurable.onAppended(1, 32 * 1_048_576, AT);
      expect(undurable.exceeds(1)).toBe(false);
      undurable.onDurable(turn + 1, AT);
    }
    undurable.onAppended(1, 65 * 1_048_576, AT);
    expect(undurable.exceeds(1)).toBe(true);
    // An outdated report changes nothing.
    undurable.onDurable(5, AT);
    expect(undurable.exceeds(1)).toBe(true);
    undurable.onDurable(3_001, AT);
    expect(undurable.exceeds(1)).toBe(false);
  });

  it("reserves the last share of both limits for privileged requests", () => {
    const undurable = new Undurable();
    undurable.onAppended(55_000, 1, AT);
    expect([undurable.exceeds(0.9), undurable.exceeds(1)]).toEqual([true, false]);
    undurable.onDurable(55_000, AT);
    undurable.onAppended(1, 60 * 1_048_576, AT);
    expect([undurable.exceeds(0.9), undurable.exceeds(1)]).toEqual([true, false]);
  });

  it("reports the current delay of the log, not an earlier one", () => {
    const undurable = new Undurable();
    undurable.onAppended(1, 1, millis(0));
    expect(undurable.delayMs(millis(700))).toBe(700);
    undurable.onDurable(1, millis(900));
    expect([undurable.delayMs(millis(1_000)), undurable.p99Ms]).toEqual([900, 900]);
    undurable.onAppended(1, 1, millis(5_000));
    undurable.onDurable(2, millis(5_003));
    expect(undurable.delayMs(millis(10_900))).toBe(900);
    expect(undurable.delayMs(millis(10_901))).toBe(3);
    expect(undurable.delayMs(millis(20_000))).toBe(0);
  });
});
