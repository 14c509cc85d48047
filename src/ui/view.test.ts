import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { LiveRun } from "../core/load/results/live.ts";
import { HEARTBEAT_MS, heartbeat } from "./ci-view.ts";
import { parseKeys } from "./keys.ts";
import { colorDepth, type Environment } from "./style.ts";
import { anyRun, anySummary, name } from "./testing/arbitrary.ts";
import { SHOP, syntheticRun, syntheticSummary } from "./testing/synthetic.ts";
import { TestHost, TestKeyboard, TestTerminal } from "./testing/terminal.ts";
import { chooseMode, createView } from "./view.ts";

const ESCAPE = /[\x00-\x09\x0b-\x1f\x7f-\x9f]/;

function ci(env: Environment = {}) {
  const stdout = new TestTerminal(100, 40);
  const host = new TestHost();
  const view = createView({ mode: "ci", stdout, stdin: new TestKeyboard(), env, host });
  return { stdout, host, view };
}

describe("the view", () => {
  const terminal = new TestTerminal(80, 24);
  const pipe = Object.assign(new TestTerminal(80, 24), { isTTY: false });

  it.each([
    ["auto", terminal, {}, "full"],
    ["auto", terminal, { CI: "true" }, "ci"],
    ["auto", terminal, { CI: "false" }, "full"],
    ["auto", terminal, { TERM: "dumb" }, "ci"],
    ["auto", pipe, {}, "ci"],
    ["full", terminal, { CI: "true" }, "full"],
    ["full", pipe, {}, "ci"],
    ["full", terminal, { TERM: "dumb" }, "ci"],
    ["ci", terminal, {}, "ci"],
    ["none", terminal, {}, "none"],
  ] as const)(
    "asked for %s is chosen by terminal and variables (%#, TUI-6)",
    (mode, stdout, env, chosen) => {
      expect(chooseMode({ mode, stdout, env })).toBe(chosen);
    },
  );

  it("prints nothing at all with none", () => {
    const stdout = new TestTerminal(80, 24);
    const view = createView({
      mode: "none",
      stdout,
      stdin: new TestKeyboard(),
      env: {},
      host: new TestHost(),
    });
    view.start(() => {});
    view.update(syntheticRun(3));
    view.message("hello");
    view.finish({ summary: syntheticSummary(30), files: ["a"] });
    expect(stdout.written).toBe("");
  });
});

describe("plain lines", () => {
  it("introduce the run, beat every five seconds and end with the result", async () => {
    const { stdout, host, view } = ci();
    view.start(() => {});
    for (let elapsed = 0.5; elapsed <= 30; elapsed += 0.5) {
      view.update(syntheticRun(elapsed));
      if (elapsed === 7) view.message("halfway\x1b[31m there\nindeed");
      host.advance(500);
    }
    view.finish({ summary: syntheticSummary(30), files: ["out/report.html", "out/summary.json"] });
    await expect(stdout.written).toMatchFileSnapshot("testdata/shop-ci.txt");
    expect(stdout.written).not.toMatch(ESCAPE);
    const beats = stdout.written.match(/^\d\d:\d\d +\d+ %/gm)?.length ?? 0;
    expect(beats).toBe(Math.floor(29_500 / HEARTBEAT_MS));
  });

  it("count no steps of a flow, whose steps are known once they occur", () => {
    const { stdout, view } = ci();
    view.start(() => {});
    const live = syntheticRun(0.5);
    const workflows = live.summary.workflows.map((workflow) => ({ ...workflow, steps: [] }));
    view.update({ ...live, summary: { ...live.summary, workflows } });
    expect(stdout.written).toContain("  browse: 64 virtual users for 30s\n");
  });

  it("stop quietly when their reader is closed, and the run goes on", () => {
    const { stdout, view } = ci();
    view.start(() => {});
    stdout.emit("error");
    view.update(syntheticRun(3));
    view.message("unheard");
    view.finish({ summary: syntheticSummary(30), files: [] });
    expect(stdout.written).toBe("");
  });

  it("contain no escape code for any run, message or result", () => {
    fc.assert(
      fc.property(anyRun, anySummary, name, (live, summary, message) => {
        const { stdout, host, view } = ci({ GITHUB_ACTIONS: "true" });
        view.start(() => {});
        host.advance(HEARTBEAT_MS);
        view.update(live);
        view.message(message);
        view.finish({ summary, files: [message] });
        expect(stdout.written).not.toMatch(ESCAPE);
      }),
      { numRuns: 100 },
    );
  });

  it("name the slowest step, the failing thresholds and a generator at its limit", () => {
    const live = syntheticRun(20);
    const limited: LiveRun = {
      ...live,
      summary: { ...live.summary, generator: { ...live.summary.generator, limited: true } },
    };
    expect(heartbeat(limited)).toMatch(
      /p99 75\.0 ms \(pay\) .*✗ latency\.p99 < 50ms \(61\.4 ms\).*! the generator is the limit/,
    );
  });

  it("annotate failed thresholds under GitHub Actions only", () => {
    const summary = syntheticSummary(30);
    const plain = ci();
    plain.view.finish({ summary, files: [] });
    expect(plain.stdout.written).not.toContain("::error");
    const actions = ci({ GITHUB_ACTIONS: "true" });
    actions.view.finish({ summary, files: [] });
    expect(actions.stdout.written).toContain(
      "::error title=Threshold failed::latency.p99 < 50ms: actual 61.4 ms\n",
    );
    const passed = ci({ GITHUB_ACTIONS: "true" });
    passed.view.finish({ summary: syntheticSummary(30, { ...SHOP, failing: false }), files: [] });
    expect(passed.stdout.written).not.toContain("::error");
  });
});

describe("colours", () => {
  it.each([
    [{ TERM: "xterm-256color" }, "256"],
    [{ TERM: "xterm-256color", COLORTERM: "truecolor" }, "truecolor"],
    [{ TERM: "xterm" }, "16"],
    [{ TERM: "xterm-256color", NO_COLOR: "1" }, "none"],
    [{ TERM: "xterm-256color", NO_COLOR: "" }, "256"],
    [{ TERM: "dumb" }, "none"],
    [{ TERM: "xterm", FORCE_COLOR: "3" }, "truecolor"],
    [{ COLORTERM: "truecolor", FORCE_COLOR: "0" }, "none"],
  ] as const)("%j give %s", (env, depth) => {
    expect(colorDepth(env)).toBe(depth);
  });
});

describe("keyboard input", () => {
  it("is read key by key, and unknown sequences are dropped completely", () => {
    expect(parseKeys("pq")).toEqual(["pause", "quit"]);
    expect(parseKeys("\x1b[A\x1bOB\x1b")).toEqual(["up", "down", "escape"]);
    expect(parseKeys("\x1b[1;5q\x1b[15~\x1bq\x1b[200~")).toEqual([]);
    expect(parseKeys("\x03")).toEqual(["interrupt"]);
  });

  it("of any kind is accepted", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (input) => Array.isArray(parseKeys(input))),
    );
  });
});
