/** Workflows that replace global timers, as fake timers of test libraries do. */

import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { InProcessRun } from "../runner/testing/in-process-run.ts";
import { flow } from "../workflow/flow.ts";

const NAMES = ["setTimeout", "setInterval", "setImmediate"] as const;

it("keeps to the plan when a workflow replaces the global timers", async () => {
  const real = NAMES.map((name) => [name, globalThis[name]] as const);
  const noTimers = (): never => {
    throw new Error("no timers");
  };
  const body = flow("f", { vus: 2, duration: "300ms" }, async ({ pause, step }) => {
    for (const name of NAMES) Reflect.set(globalThis, name, noTimers);
    await step("x", () => 1);
    await pause("10ms");
  });
  try {
    const run = await InProcessRun.start(body);
    await run.done;
    expect(run.summary().workflows[0]?.iterations.completed).toBeGreaterThan(0);
    expect(run.summary().workflows[0]?.iterations.failed).toBe(0);
  } finally {
    for (const [name, timer] of real) Reflect.set(globalThis, name, timer);
  }
});

it("uses no global timer in the engine or in protocols", () => {
  // Cores are started by another process; browsers run scripts of `figures.ts`.
  const others = /\.test\.ts$|\/testing\/|core-(pool|process)\.ts$|browser\/figures\.ts$/;
  const calls = new RegExp(`(?<![.\\w])(${NAMES.join("|")})\\(`);
  for (const folder of ["../engine/", "../protocols/"]) {
    const place = fileURLToPath(new URL(folder, import.meta.url));
    const files = readdirSync(place, { recursive: true, encoding: "utf8" });
    const wrong = files.filter((file) => {
      if (!file.endsWith(".ts") || others.test(`/${file}`)) return false;
      const text = readFileSync(`${place}${file}`, "utf8");
      return calls.test(text.replace(/^\s*(\*|\/[/*]).*$/gm, "")) && !text.includes("/timers.ts");
    });
    expect(wrong).toEqual([]);
  }
});
