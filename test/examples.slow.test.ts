/** Every example runs for a second or two against the demo target, all of them from one process. */

import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type DemoTarget, startDemoTarget } from "../src/demo/server.ts";
import { runFiles } from "./run-files.ts";

const folder = fileURLToPath(new URL("../examples", import.meta.url));
const examples = readdirSync(folder).filter((name) => name.endsWith(".ts"));

/** Longer where a threshold counts what was done: a busy machine must have the time for it. */
const DURATIONS: Readonly<Record<string, string>> = {
  "data-feed.ts": "30s",
  "metrics-and-thresholds.ts": "4s",
  "mix.ts": "3s",
};

let target: DemoTarget;
let ran: Awaited<ReturnType<typeof runFiles>>;

beforeAll(async () => {
  target = await startDemoTarget({ port: 0 });
  const env = { HYPERSCALE_TARGET: target.url };
  ran = await runFiles(
    examples.map((name) => ({
      file: `examples/${name}`,
      options: { duration: DURATIONS[name] ?? "1s", cores: 1, env },
    })),
  );
});
afterAll(() => target.close());

describe("examples", () => {
  it.each(examples)("%s runs with the verdict it documents", (name) => {
    const { messages, summary } = ran.get(`examples/${name}`) ?? {};
    if (summary === undefined) throw new Error(`${name} has not run`);
    expect(messages).toEqual([]);
    // How fast a busy machine is proves nothing: a latency may be over its limit, nothing else may.
    const failed = summary.thresholds.filter(({ passed }) => !passed);
    expect(failed.filter(({ expression }) => !expression.startsWith("latency"))).toEqual([]);
    expect(summary.reasons.length).toBe(failed.length);
    expect(summary.verdict).toBe(failed.length === 0 ? "passed" : "failed");
    for (const workflow of summary.workflows) {
      expect(workflow.status, workflow.name).toBe("completed");
      for (const step of workflow.steps) expect(step.ok, step.name).toBeGreaterThan(0);
    }
  });
});
