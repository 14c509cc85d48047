import { describe, expect, it } from "vitest";
import { meansAround } from "../../web/report/run-view.ts";

describe("the load of a run at the windows of its charts", () => {
  it("is the mean of all finer windows, not one of them", () => {
    const starts = [0, 0.25, 0.5, 0.75, 1, 1.25];
    const grid = { starts, windowSeconds: 0.25 };
    expect(meansAround([0.5, 1.5, 2.5], 1, grid, [1, 2, 3, 6, 4, 8])).toEqual([3, 6, null]);
  });

  it("is the value of the coarser window around it", () => {
    const grid = { starts: [0, 2], windowSeconds: 2 };
    expect(meansAround([0.5, 1.5, 2.5], 1, grid, [7, 9])).toEqual([7, 7, 9]);
  });
});
