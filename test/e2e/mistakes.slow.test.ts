/** Every mistake of a beginner has a readable message, with file and line where there is one. */

import { execFileSync } from "node:child_process";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { main } from "../../src/cli/main.ts";
import { type DemoTarget, startDemoTarget } from "../../src/demo/server.ts";
import { isRoot, needs } from "../needs.ts";
import { Scratch } from "./cli.ts";

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

const head = 'import { http, workflow } from "hyperscalejs";\n\n';
const load = '{ vus: 1, duration: "1s" }';
const get = 'http.get("http://127.0.0.1:9/")';
const shop = `${head}export default workflow("shop", ${load})\n`;

const FILES: readonly [what: string, file: string, text: string, message: RegExp][] = [
  [
    "a syntax error",
    "a.ts",
    `${head}export default workflow("a", ${load};\n`,
    /a\.ts:3:\d+: Expected/,
  ],
  [
    "a misspelt step in a threshold",
    "b2.ts",
    `${head}const thresholds = ["latency{step=lgin}.p99 < 1s"];
export default workflow("a", { vus: 1, duration: "1s", thresholds }).step("login", ${get});
`,
    /workflow "a": threshold .*: no step is called "lgin"; did you mean "login"\?/,
  ],
  [
    "no export",
    "b.ts",
    `${head}workflow("a", ${load});\n`,
    /b\.ts: no flow or workflow is exported/,
  ],
  [
    "an unknown step in after",
    "c.js",
    `${shop}  .step("login", ${get})\n  .step("cart", { after: ["logn"] }, ${get});\n`,
    /c\.js:5:4: workflow "shop": step "cart" waits for "logn"/,
  ],
  [
    "duplicate names",
    "d.js",
    `${shop}  .step("login", ${get})\n  .step("login", ${get});\n`,
    /d\.js:5:4: workflow "shop": there are two steps named "login"/,
  ],
  [
    "a bad duration",
    "e.ts",
    `${head}export default workflow("shop", { vus: 1, duration: "soon" });\n`,
    /e\.ts:3:16: workflow "shop": duration: "soon" is not a duration/,
  ],
  [
    "VUs 0",
    "f.mts",
    `${head}export default workflow("shop", { vus: 0, duration: "1s" });\n`,
    /f\.mts:3:16: workflow "shop": vus is 0; it must be a whole number of at least 1/,
  ],
  [
    "a URL without a scheme",
    "g.ts",
    `${head}export default workflow("shop", ${load}).step("s", http.get("localhost:8080/"));\n`,
    /g\.ts:3:\d+: "localhost:8080\/" has no scheme: write http:\/\/localhost:8080\//,
  ],
  [
    "a mistake of one's own",
    "h.ts",
    `${head}const settings: any = undefined;\nexport default workflow("shop", settings.load);\n`,
    /h\.ts:4:\d+: Cannot read properties of undefined \(reading 'load'\)/,
  ],
  [
    "an import that is not there",
    "i.ts",
    `import { x } from "./nowhere";\nexport default x;\n`,
    /i\.ts:1:19: Could not resolve "\.\/nowhere"/,
  ],
  [
    "a package that is not installed",
    "j.ts",
    `import x from "no-such-package-here";\nexport default x;\n`,
    /j\.ts: Cannot find package 'no-such-package-here'; install it with: npm install/,
  ],
  [
    "a misspelt import",
    "k.ts",
    `import { worflow } from "hyperscalejs";\nexport default worflow("a", ${load});\n`,
    /k\.ts: The requested module "hyperscalejs" does not provide an export named 'worflow'/,
  ],
  [
    "workflows that wait for each other",
    "l.ts",
    `${head}export const a = workflow("a", ${load}).dependsOn("b").step("s", ${get});\n` +
      `export const b = workflow("b", ${load}).dependsOn("a").step("s", ${get});\n`,
    /a -> b -> a/,
  ],
  [
    "an unknown workflow in dependsOn",
    "m.ts",
    `${head}export default workflow("a", ${load}).dependsOn("setup").step("s", ${get});\n`,
    /"a" .*"setup"/,
  ],
  [
    "a bad threshold",
    "n.ts",
    `${head}export default workflow("a", { vus: 1, duration: "1s", thresholds: ["latency.p99 <"] });\n`,
    /n\.ts:3:16: workflow "a": threshold "latency\.p99 <"/,
  ],
  [
    "a data file that is not there",
    "o.ts",
    'import { feed, workflow } from "hyperscalejs";\n' +
      `export default workflow("a", ${load}).data("u", feed.csv("users.csv"))\n` +
      '  .step("s", ({ http }) => http.get("http://127.0.0.1:9/"));\n',
    /cannot read the data file .*users\.csv/,
  ],
  [
    "a target that refuses connections",
    "p.ts",
    `${head}export default workflow("a", ${load}).step("s", http.get("http://127.0.0.1:1/"));\n`,
    /nothing listens at 127\.0\.0\.1:1: the connection was refused/,
  ],
];

describe("in a file: exit 2, nothing written", () => {
  it.concurrent.each(FILES)("%s", async (_what, file, text, message) => {
    here.write(file, text);
    const { code, stderr } = await here.run("run", file, "--ui", "ci", "--out", `out-${file}`);
    expect(stderr).toMatch(message);
    expect(stderr).not.toMatch(/\n\s+at /);
    expect(code).toBe(2);
    expect(here.files(".")).not.toContain(`out-${file}`);
  });
});

describe("in the arguments: exit 2", () => {
  const url = "http://127.0.0.1:1/";
  it.each<[what: string, args: string[], message: RegExp]>([
    [
      "a file that is not there",
      ["none.ts"],
      /there is no file none\.ts[\s\S]*hyperscale new none\.ts/,
    ],
    ["a folder", ["."], /\. is a folder/],
    ["another kind of file", ["data.json"], /data\.json/],
    [
      "a URL without scheme",
      ["localhost:8080/x"],
      /write its scheme: hyperscale run http:\/\/localhost:8080\/x/,
    ],
    ["another scheme", ["ftp://host/"], /only http:\/\/ and https:\/\//],
    ["a port that does not exist", ["http://127.0.0.1:99999/"], /not a URL/],
    ["--vus 0", [url, "--vus", "0"], /--vus is "0"/],
    [
      "a bad --duration",
      [url, "--duration", "10"],
      /--duration: "10" is not a duration; did you mean "10s"\?/,
    ],
    ["a bad --threshold", [url, "--threshold", "speed>9"], /--threshold "speed>9"/],
    [
      "a bad --header",
      [url, "--header", "nocolon"],
      /--header "nocolon": write it as "Name: value"/,
    ],
    ["--rate with --vus", [url, "--rate", "5", "--vus", "5"], /exclude each other/],
    ["--body with a file", ["x.ts", "--body", "x"], /only go with a URL/],
    ["an unknown flag", [url, "--duratoin", "5s"], /unknown option '--duratoin'/],
    ["no target", [], /missing required argument/],
  ])("%s", async (_what, args, message) => {
    const written = vi.spyOn(process.stderr, "write").mockReturnValue(true);
    const before = process.exitCode;
    try {
      // No process is needed to read arguments: these never get as far as starting a core.
      await main(["run", ...args]);
      expect(written.mock.calls.join("\n")).toMatch(message);
      expect(process.exitCode).toBe(2);
    } finally {
      process.exitCode = before;
      written.mockRestore();
    }
  });
});

it("a name that does not resolve: exit 2", async () => {
  const { code, stderr } = await here.run("run", "http://nowhere.invalid/");
  expect(stderr).toMatch(/cannot resolve the host name "nowhere\.invalid"/);
  expect(code).toBe(2);
});

describe("limits of the machine", () => {
  it("too few local ports: what to do, before anything runs", async () => {
    const before = demo.stats().connections;
    const { code, stderr } = await here.run("run", demo.url, "--vus", "70000", "--cores", "8");
    expect(code).toBe(2);
    expect(stderr).toMatch(/70000 connections to one address and port need as many local ports/);
    expect(demo.stats().connections).toBe(before);
  });

  it("a cluster of two gates, also in the background: reported once", async () => {
    for (const flags of [[], ["--detach"]]) {
      const { code, stderr } = await here.run("cluster", "up", "--gates", "2", ...flags);
      const why = "hyperscale cluster up: --gates: an odd number, as 1, 3 or 5";
      expect({ code, why: stderr.trim() }).toEqual({ code: 2, why });
    }
  });

  it(
    "too few file descriptors: what to do, before anything runs (as root: with a hard limit)",
    needs(process.platform === "linux" && isRoot, "only root on Linux may lower a hard limit"),
    async () => {
      const before = demo.stats().connections;
      // An ordinary user cannot raise the hard limit; root without the capability is the same.
      const script =
        `ulimit -n 256; exec setpriv --reuid=65534 --clear-groups --inh-caps=-all --bounding-set=-all ` +
        `"${process.execPath}" bin/hyperscale.js run "${demo.url}" --vus 1000 --cores 1 --ui ci --out /tmp/never`;
      let failure: { status?: number; stderr?: string } = {};
      try {
        execFileSync("sh", ["-c", script], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
      } catch (error) {
        failure = error as { status?: number; stderr?: string };
      }
      expect(failure.stderr).toMatch(
        /1000 connections need \d+ open files, and this process may have 256/,
      );
      expect(failure.status).toBe(2);
      expect(demo.stats().connections).toBe(before);
    },
  );
});
