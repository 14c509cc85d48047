import { describe, expect, it } from "vitest";
import { areFigures, figuresLine } from "./figures-line.ts";
import { JsonView } from "./json-view.ts";
import { syntheticRun } from "./testing/synthetic.ts";

/** Output of `--ui json` for a run, as another process reads it. */
function figuresAt(elapsedSeconds: number): Readonly<Record<string, unknown>> {
  let text = "";
  const stdout = { write: (part: string) => (text += part), on: () => undefined };
  const view = new JsonView({ stdout, env: {} } as never);
  view.start(() => undefined);
  view.update(syntheticRun(elapsedSeconds));
  return JSON.parse(text.trim().split("\n").at(-1) ?? "") as Readonly<Record<string, unknown>>;
}

describe("live metrics of a run", () => {
  it("are one line of the important values", () => {
    const figures = figuresAt(15);
    if (!areFigures(figures)) throw new Error("a view tells figures");
    expect(figuresLine(figures)).toMatch(
      /^00:15 +\d+ % {2}[\d,.]+\/s {2}p95 [\d.]+ m?s {2}p99 [\d.]+ m?s .* {2}failed [\d,.]+\/s {2}[\d,]+ VUs?$/,
    );
  });

  it("are recognised by everything the line shows, and nothing else is accepted", () => {
    const figures = figuresAt(15);
    for (const other of [null, "text", 7, [], {}, { done: 0.5 }])
      expect(areFigures(other)).toBe(false);
    for (const field of ["phase", "elapsedSeconds", "totalSeconds", "ratePerSecond", "workflows"])
      expect(areFigures({ ...figures, [field]: undefined })).toBe(false);
    expect(areFigures({ ...figures, workflows: [{ activeVus: 1, steps: [{}] }] })).toBe(false);
  });
});
