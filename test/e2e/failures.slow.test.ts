/** A target that misbehaves: every request is accounted for, by kind. */

import { afterAll, beforeAll, expect, it } from "vitest";
import { startDemoTarget } from "../../src/demo/server.ts";
import {
  type HostileTarget,
  startHostileTarget,
} from "../../src/protocols/testing/hostile-target.ts";
import { Scratch, stepOf, sum, until } from "./cli.ts";

let hostile: HostileTarget;
let here: Scratch;

beforeAll(async () => {
  hostile = await startHostileTarget();
  here = new Scratch();
});
afterAll(async () => {
  here.remove();
  await hostile.close();
});

it("resets, hangs, rubbish and closing in mid-body: the sum of kinds is what the server was asked", async () => {
  const behaviours = {
    reset: "reset",
    "reset-mid-body": "reset",
    "half-body": "reset",
    close: "reset",
    garbage: "protocol",
    "bad-chunk": "protocol",
    "two-lengths": "protocol",
    hang: "timeout",
    "body-drip": "timeout",
    fine: null,
  } as const;
  const steps = Object.entries(behaviours)
    .map(([name, kind]) => {
      const options = kind === "timeout" ? ', { timeout: "1s" }' : "";
      return `  .step("${name}", http.get("${hostile.url}/${name}"${options}))`;
    })
    .join("\n");
  here.write(
    "hostile.ts",
    `import { http, workflow } from "hyperscalejs";
export default workflow("hostile", { vus: 4, iterations: 12 })
${steps};
`,
  );
  const before = hostile.served();
  const { code } = await here.run(
    "run",
    "hostile.ts",
    "--ui",
    "none",
    "--out",
    "out",
    "--cores",
    "2",
  );
  const served = hostile.served();
  const summary = here.summary();
  for (const [name, kind] of Object.entries(behaviours)) {
    const step = stepOf(summary, "hostile", name);
    expect([name, step.requests]).toEqual([name, 12]);
    expect([name, (served[name] ?? 0) - (before[name] ?? 0)]).toEqual([name, 12]);
    expect([name, step.errors]).toEqual([name, kind === null ? {} : { [kind]: 12 }]);
    expect(step.ok + step.failed).toBe(step.requests);
    expect(sum(step.errors)).toBe(step.failed);
  }
  // Steps that never succeed fail the run.
  expect(code).toBe(99);
});

it("a server that stops and returns: refused and reset in between, nothing uncounted", async () => {
  let demo = await startDemoTarget({ port: 0 });
  const { port, url } = demo;
  const args = ["--vus", "6", "--duration", "8s", "--ui", "none", "--out", "gone", "--cores", "1"];
  const run = here.start(["run", url, ...args]);
  await until(() => demo.stats().requests > 200);
  await demo.close();
  const first = demo.stats().requests;
  // Long enough for the run to have had its turn on a busy machine.
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  demo = await startDemoTarget({ port });
  const { code } = await run.done;
  const second = demo.stats().requests;
  await demo.close();
  expect(code).toBe(0);
  const [step] = here.summary("gone").workflows[0]?.steps ?? [];
  expect(step).toBeDefined();
  const { errors = {}, ok = 0, requests = 0 } = step ?? {};
  expect(ok + sum(errors)).toBe(requests);
  expect(Object.keys(errors).every((kind) => kind === "refused" || kind === "reset")).toBe(true);
  expect(errors["refused"]).toBeGreaterThan(0);
  expect(second).toBeGreaterThan(0);
  // Requests that reached the server and were not ok were cut off on their user's exit: at most one per user.
  expect(first + second - ok).toBeGreaterThanOrEqual(0);
  expect(first + second - ok).toBeLessThanOrEqual(6);
});

it("a run of which nothing succeeds fails without any threshold", async () => {
  const args = ["--iterations", "5", "--ui", "ci", "--out", "none"];
  const { code, stdout } = await here.run("run", `${hostile.url}/reset`, ...args);
  expect(code).toBe(99);
  expect(stdout).toMatch(/0 of 5 succeeded/);
  expect(stdout).toMatch(/reset\s+5/);
});
