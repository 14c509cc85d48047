/** Runs from a user's program, in its own process, against the built package. */

import { spawn } from "node:child_process";
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type DemoTarget, startDemoTarget } from "../../src/demo/server.ts";
import { Scratch } from "./cli.ts";

let demo: DemoTarget;
let here: Scratch;

beforeAll(async () => {
  demo = await startDemoTarget({ port: 0 });
  here = new Scratch();
  // Builds the package when its sources are newer.
  await here.run("--help");
  mkdirSync(join(here.path, "node_modules"));
  const root = fileURLToPath(new URL("../..", import.meta.url));
  symlinkSync(root, join(here.path, "node_modules", "hyperscalejs"));
  here.write(
    "flow.ts",
    `import { http, workflow } from "hyperscalejs";
export default workflow("shop", { vus: 2, duration: "1h", gracefulStop: "2s" })
  .step("home", http.get("${demo.url}"))
  .check("ok", ({ results, user }) => {
    if (user.iteration === 0) console.log("hello from user", user.id);
    return results.home.ok;
  });`,
  );
});
afterAll(async () => {
  here.remove();
  await demo.close();
});

/** Runs a program and returns its output as JSON, one value per line. */
async function program(text: string): Promise<unknown[]> {
  here.write("program.mjs", `import { RunError, run } from "hyperscalejs";\n${text}`);
  const child = spawn(process.execPath, ["program.mjs"], { cwd: here.path });
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (data) => {
    stdout += String(data);
  });
  child.stderr.on("data", (data) => {
    stderr += String(data);
  });
  const code = await new Promise((resolve) => child.on("close", resolve));
  expect(code, stderr).toBe(0);
  return stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as unknown);
}

it("report progress while running, and the result", async () => {
  const before = demo.stats().requests;
  const [kinds, first, message, live, end] = await program(`
const test = run("flow.ts", { iterations: 50, thresholds: ["errors.rate < 1%"], cores: 2 });
const events = [];
for await (const event of test) events.push(event);
const summary = await test.summary;
const step = summary.workflows[0].steps[0];
const lives = events.filter(({ kind }) => kind === "live");
console.log(JSON.stringify([...new Set(events.map(({ kind }) => kind))].sort()));
console.log(JSON.stringify(events[0].kind));
console.log(JSON.stringify(events.filter(({ kind }) => kind === "message").map(({ line }) => line).sort()));
console.log(JSON.stringify(lives.every(({ live }) => live.summary.schema === summary.schema)));
console.log(JSON.stringify({ verdict: summary.verdict, ok: step.ok, command: summary.environment.command,
  thresholds: summary.thresholds.map(({ expression, passed }) => [expression, passed]) }));`);
  expect(kinds).toEqual(expect.arrayContaining(["message", "started"]));
  expect(first).toBe("started");
  expect(message).toEqual(["hello from user 0", "hello from user 1"]);
  expect(live).toBe(true);
  expect(end).toEqual({
    verdict: "passed",
    ok: 50,
    command: 'run("flow.ts")',
    thresholds: [
      ["errors.rate < 1%", true],
      ["checks.rate >= 100%", true],
    ],
  });
  expect(demo.stats().requests - before).toBe(50);
});

it("end gracefully with an abort signal or stop(), with results; pause and scale them", async () => {
  const [aborted, stopped, early] = await program(`
const abort = new AbortController();
const first = run("flow.ts", { signal: abort.signal });
for await (const event of first)
  if (event.kind === "live" && event.live.summary.workflows[0].iterations.completed > 10) abort.abort();
const one = await first.summary;
console.log(JSON.stringify([one.verdict, one.workflows[0].steps[0].ok > 10]));
const second = run("${demo.url}", { rate: 50, duration: "1h" });
const phases = new Set();
for await (const event of second) {
  if (event.kind !== "live") continue;
  const { phase, summary } = event.live;
  phases.add(phase);
  if (phase === "running" && !phases.has("paused")) second.pause();
  else if (phase === "paused") { second.scale(2); second.resume(); }
  else if (phases.has("paused") && summary.workflows[0].iterations.completed > 20) second.stop();
}
const two = await second.summary;
console.log(JSON.stringify([two.verdict, phases.has("paused"), two.notes.some((note) => note.includes("by hand"))]));
const gone = AbortSignal.abort();
console.log(JSON.stringify(await run("flow.ts", { signal: gone }).summary.catch((error) =>
  [error instanceof RunError, error.exitCode, error.message])));`);
  expect(aborted).toEqual(["interrupted", true]);
  expect(stopped).toEqual(["interrupted", true, true]);
  expect(early).toEqual([true, 130, "interrupted before the run began"]);
});

it("compute no live metrics for a reader that has left", async () => {
  const [pictures] = await program(`
const test = run("${demo.url}", { rate: 20, duration: "3s" });
for await (const event of test) if (event.kind === "live") break;
let pictures = 0;
for await (const event of test.quiet()) if (event.kind === "live") pictures++;
console.log(JSON.stringify(pictures));`);
  // One may be on its way.
  expect(pictures).toBeLessThanOrEqual(1);
});

it("reject invalid options, and two may run at once", async () => {
  const [refused, both] = await program(`
const refusals = [
  () => run("nowhere.ts").summary,
  () => run("flow.ts", { rate: 5, vus: 5 }).summary,
  () => run("flow.ts", { duration: "soon" }).summary,
  () => run("flow.ts", { thresholds: ["latency.p99 <"] }).summary,
  () => run("flow.ts", { thresholds: ["latency{step=hmoe}.p99 < 1s"] }).summary,
  () => run("flow.ts", { method: "POST" }).summary,
  () => run("${demo.url}", { method: "BREW" }).summary,
  async () => { for await (const _ of run("flow.ts", { cores: 0 })); },
];
const codes = [];
for (const refusal of refusals) codes.push(await refusal().then(() => 0, (error) => error.exitCode));
console.log(JSON.stringify(codes));
const [a, b] = await Promise.all([
  run("${demo.url}", { vus: 1, iterations: 20 }).summary,
  run("flow.ts", { iterations: 30, timeout: "1m", abortOnFail: "1s" }).summary,
]);
console.log(JSON.stringify([a, b].map(({ verdict, workflows }) => [verdict, workflows[0].steps[0].ok])));`);
  expect(refused).toEqual(Array(8).fill(2));
  expect(both).toEqual([
    ["passed", 20],
    ["passed", 30],
  ]);
});
