/** A whole run as a user sees it: verdict, files, exit codes, and every flag of URL mode. */

import { XMLParser } from "fast-xml-parser";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeCertificate } from "../../src/demo/certificate.ts";
import { type DemoTarget, startDemoTarget } from "../../src/demo/server.ts";
import { Scratch, stepOf } from "./cli.ts";

let demo: DemoTarget;
let here: Scratch;

beforeAll(async () => {
  demo = await startDemoTarget({ port: 0 });
  here = new Scratch();
});
afterAll(async () => {
  here.remove();
  await demo.close();
});

describe("two workflows with a dependency, context and failing thresholds", () => {
  it("end with 99 and name what failed, with its value, in every output", async () => {
    here.write(
      "shop.ts",
      `import { http, workflow } from "hyperscalejs";
const target = "${demo.url}";
export const prepare = workflow("prepare", { vus: 2, iterations: 10, thresholds: ["errors.rate < 1%"] })
  .step("home", http.get(target))
  .step("login", ({ http }) => http.post(target + "/login", { json: { user: "ada" } }))
  .step("me", { after: ["login"] }, ({ http, results }) => {
    const { token } = results.login.json<{ token: string }>();
    return http.get(target + "/users/1", { headers: { authorization: "Bearer " + token } });
  })
  .provide("token", { to: ["browse"] }, ({ last }) => last.login?.json<{ token: string }>().token);
export const browse = workflow("browse", {
  vus: 3, iterations: 12,
  thresholds: ["latency{step=slow}.p50 < 1ms", "errors{step=broken}.rate < 10%", "requests.count > 1"],
})
  .dependsOn("prepare")
  .use("auth", { from: ["prepare"], keys: { token: "" } }, ({ token }) => "Bearer " + token)
  .step("users", ({ http, used }) => http.get(target + "/users", { headers: { authorization: used.auth } }))
  .step("slow", { after: ["users"] }, http.get(target + "/slow?ms=20"))
  .step("broken", { after: ["users"] }, http.get(target + "/fail"))
  .step("last", { after: ["slow", "broken"] }, http.get(target))
  .check("users were let in", ({ results }) => results.users.status === 200);
`,
    );
    const { code, stdout, stderr } = await here.run(
      "run",
      "shop.ts",
      "--ui",
      "ci",
      "--out",
      "out",
      "--cores",
      "2",
    );
    expect(code, stderr).toBe(99);
    expect(here.files()).toEqual(["junit.xml", "report.html", "summary.json"]);

    const summary = here.summary();
    expect(summary).toMatchObject({ schema: "hyperscale/summary@1", verdict: "failed", lost: [] });
    expect(summary.workflows.map(({ name, status }) => [name, status])).toEqual([
      ["prepare", "completed"],
      ["browse", "completed"],
    ]);
    for (const [name, requests] of [
      ["home", 10],
      ["login", 10],
      ["me", 10],
    ] as const)
      expect(stepOf(summary, "prepare", name)).toMatchObject({ requests, ok: requests, failed: 0 });
    expect(stepOf(summary, "browse", "users")).toMatchObject({ requests: 12, ok: 12 });
    expect(stepOf(summary, "browse", "broken")).toMatchObject({ ok: 0, errors: { status: 12 } });
    const [first, second] = summary.workflows;
    expect(second?.startedAtSeconds).toBeGreaterThan(first?.startedAtSeconds ?? 0);

    const failed = summary.thresholds.filter(({ passed }) => !passed);
    expect(failed.map(({ expression, workflow }) => [workflow, expression])).toEqual([
      ["browse", "latency{step=slow}.p50 < 1ms"],
      ["browse", "errors{step=broken}.rate < 10%"],
    ]);
    expect(failed[0]?.actual).toBeGreaterThan(19);
    expect(failed[1]).toMatchObject({ actual: 100, actualText: "100 %" });

    const junit: unknown = new XMLParser({ ignoreAttributes: false }).parse(
      here.read("out/junit.xml"),
    );
    const page = here.pageData();
    for (const { actualText, expression } of failed) {
      for (const place of [stdout, JSON.stringify(junit)]) {
        expect(place.replaceAll("&lt;", "<")).toContain(expression);
        expect(place).toContain(actualText);
      }
      expect(page).toContain(JSON.stringify(expression).slice(1, -1));
      expect(page).toContain(actualText);
    }
    expect(stdout).toMatch(/FAILED/);
    // Plain lines for machines: no escape codes.
    expect(stdout).not.toContain("\u001b");
  });
});

describe("URL mode", () => {
  const flags = ["--ui", "none", "--cores", "1", "--out", "url"];
  const echo = async (...args: string[]): Promise<number | null> => {
    const { code, stderr } = await here.run("run", ...args, ...flags);
    expect(stderr).toBe("");
    return code;
  };

  it("counts what the server counted, prints nothing with --ui none, and passes", async () => {
    const before = demo.stats().requests;
    const { code, stderr, stdout } = await here.run(
      "run",
      demo.url,
      "--vus",
      "4",
      "--duration",
      "500ms",
      ...flags,
    );
    expect([code, stdout, stderr]).toEqual([0, "", ""]);
    const summary = here.summary("url");
    const [step] = summary.workflows[0]?.steps ?? [];
    expect(step?.requests).toBe(demo.stats().requests - before);
    expect(step?.latencyMs.count).toBe(step?.requests);
    expect(summary.workflows[0]?.load).toBe("4 virtual users for 500ms");
    expect(summary.notes.join()).toMatch(/closed model .* not corrected/);
    // Calls of the graceful stop are in no rate and in no window.
    const inWindows = step?.series.requests.reduce((a, b) => a + b, 0) ?? 0;
    const rate = inWindows / (summary.workflows[0]?.elapsedSeconds ?? 0);
    expect(step?.ratePerSecond).toBeCloseTo(rate, 2);
  });

  it("sends the method, headers and body it is given", async () => {
    const requests: string[] = [];
    const { createServer } = await import("node:http");
    const server = createServer((request, response) => {
      let body = "";
      request.on("data", (data) => {
        body += String(data);
      });
      request.on("end", () => {
        requests.push(
          `${request.method} ${request.url} ${request.headers["x-run"]} ${request.headers["x-b"]} ${body}`,
        );
        response.end("ok");
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as import("node:net").AddressInfo;
    const headers = ["--header", "x-run: nightly", "--header", "X-B: 1:2"];
    const url = `http://127.0.0.1:${port}/a?b=c`;
    expect(
      await echo(url, "--method", "PUT", ...headers, "--body", '{"a":1}', "--iterations", "3"),
    ).toBe(0);
    server.close();
    expect(requests).toEqual(Array(3).fill('PUT /a?b=c nightly 1:2 {"a":1}'));
    expect(stepOf(here.summary("url"), `127.0.0.1:${port}`, "PUT /a")).toMatchObject({ ok: 3 });
  });

  it("keeps a rate with a bounded number of users", async () => {
    // A busy machine may miss more than 1 % of the arrivals.
    const lenient = ["--threshold", "arrivals.missed.rate <= 100%"];
    const load = ["--rate", "100", "--max-vus", "7", "--duration", "3s"];
    expect(await echo(demo.url, ...load, ...lenient)).toBe(0);
    const [workflow] = here.summary("url").workflows;
    expect(workflow).toMatchObject({
      model: "open",
      corrected: true,
      load: "100/s for 3s, at most 7 virtual users",
    });
    expect((workflow?.arrivals?.started ?? 0) + (workflow?.arrivals?.missed ?? 0)).toBe(300);
  });

  it("warms up, times out, and judges a threshold", async () => {
    const slow = `${demo.url}/slow?ms=400`;
    const args = ["--vus", "2", "--duration", "2s", "--call-timeout", "100ms", "--warmup", "200ms"];
    expect(await echo(slow, ...args, "--threshold", "errors.rate < 50%")).toBe(99);
    const summary = here.summary("url");
    const [step] = summary.workflows[0]?.steps ?? [];
    expect(step?.ok).toBe(0);
    expect(step?.errors).toEqual({ timeout: step?.requests });
    expect(summary.workflows[0]?.load).toBe("2 virtual users for 2s, warm-up 200ms");
    expect(summary.thresholds[0]).toMatchObject({
      expression: "errors.rate < 50%",
      passed: false,
      actual: 100,
    });
  });

  it("rejects an untrusted certificate unless configured otherwise", async () => {
    const secure = await startDemoTarget({ port: 0, tls: makeCertificate() });
    expect(await echo(secure.url, "--iterations", "2")).toBe(99);
    expect(here.summary("url").workflows[0]?.steps[0]?.errors).toEqual({ tls: 2 });
    expect(await echo(secure.url, "--iterations", "2", "--insecure")).toBe(0);
    expect(here.summary("url").workflows[0]?.steps[0]?.tlsMs.count).toBeGreaterThan(0);
    await secure.close();
  });

  it("cuts off what is in flight after --graceful-stop, and uses --cores", async () => {
    const out = ["--ui", "none", "--out", "cut"];
    const args = ["--vus", "4", "--duration", "3s", "--graceful-stop", "0s", "--cores", "2"];
    const { code } = await here.run("run", `${demo.url}/slow?ms=200000`, ...args, ...out);
    const summary = here.summary("cut");
    expect(summary.workflows[0]?.steps[0]).toMatchObject({ ok: 0, errors: { unanswered: 4 } });
    expect(summary.workflows[0]).toMatchObject({
      cores: 2,
      iterations: { completed: 0, interrupted: 4 },
    });
    expect(code).toBe(99);
  });

  it("writes CSV too when asked", async () => {
    const { code } = await here.run(
      "run",
      demo.url,
      "--iterations",
      "5",
      "--csv",
      "--ui",
      "none",
      "--out",
      "csv",
    );
    expect(code).toBe(0);
    expect(here.files("csv")).toEqual([
      "junit.xml",
      "report.html",
      "series.csv",
      "steps.csv",
      "summary.json",
    ]);
  });
});

it("flags override a file's load model, and the default folder is new for each run", async () => {
  here.write(
    "flow.mjs",
    `import { http, workflow } from "hyperscalejs";
export default workflow("flow", { vus: 50, duration: "1h" }).step("home", http.get("${demo.url}"));
`,
  );
  const { code } = await here.run(
    "run",
    "flow.mjs",
    "--vus",
    "2",
    "--iterations",
    "6",
    "--ui",
    "none",
  );
  expect(code).toBe(0);
  const [folder] = here.files("hyperscale-results");
  expect(here.files(`hyperscale-results/${folder}`)).toEqual([
    "junit.xml",
    "report.html",
    "summary.json",
  ]);
  const summary = here.summary(`hyperscale-results/${folder}`);
  expect(summary.workflows[0]?.load).toMatch(/^6 iterations shared by 2 virtual users/);
});
