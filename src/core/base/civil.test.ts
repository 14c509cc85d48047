import { describe, expect, it } from "vitest";
import { civilDate, isoText } from "./civil.ts";

describe("a date by hand", () => {
  it("is that of the platform's calendar, over leap years and centuries", () => {
    for (let day = -200_000; day < 200_000; day += 37) {
      const date = new Date(day * 86_400_000);
      expect(civilDate(day)).toEqual({
        year: date.getUTCFullYear(),
        month: date.getUTCMonth() + 1,
        dayOfMonth: date.getUTCDate(),
      });
    }
  });

  it("is written with the time of day as the platform does", () => {
    for (let ms = -3e12; ms < 5e12; ms += 86_399_999_937) {
      expect(isoText(ms)).toBe(new Date(ms).toISOString());
    }
  });
});
