import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { charWidth } from "../core/base/terminal-text.ts";
import { renderDashboard, shareRows } from "./dashboard.ts";
import { TAIL } from "./grid.ts";
import { paint } from "./paint.ts";
import { EMPTY_SCENE, History, type Scene } from "./scene.ts";
import { STYLE_COUNT, sgrTable } from "./style.ts";
import { anyRun, name } from "./testing/arbitrary.ts";
import { SHOP, syntheticRun } from "./testing/synthetic.ts";
import { TestTerminal } from "./testing/terminal.ts";

const OPEN = {
  totalSeconds: 60,
  failing: false,
  workflows: [{ name: "api", steps: ["GET /"], target: 1_000 }],
};

async function shown(
  columns: number,
  rows: number,
  elapsed: number,
  options = SHOP,
  scene: Partial<Scene> = {},
) {
  const terminal = new TestTerminal(columns, rows);
  const grid = renderDashboard(syntheticRun(elapsed, options), columns, rows, {
    ...EMPTY_SCENE,
    ...scene,
  });
  terminal.write(paint(null, grid, sgrTable("truecolor")));
  const screen = await terminal.screen();
  expect(screen).toEqual(grid.lines());
  return `${screen.join("\n")}\n`;
}

describe("the dashboard on a real terminal", () => {
  it.each([
    [80, 24],
    [120, 40],
    [200, 60],
    [60, 16],
    [40, 10],
  ])("is complete at %d×%d", async (columns, rows) => {
    const messages = ["a line from the workflow"];
    await expect(await shown(columns, rows, 16, SHOP, { messages })).toMatchFileSnapshot(
      `testdata/shop-${columns}x${rows}.txt`,
    );
  });

  it.each([
    [80, 24],
    [120, 40],
    [200, 60],
  ])("shows the limit of the generator completely at %d×%d", (columns, rows) => {
    const live = syntheticRun(16, SHOP);
    const reason =
      "other programs kept this machine busy: executor core 1 was 67.0 ms late (p99) though it used " +
      "4 % of a CPU, and all times include that wait; end them, or use another machine";
    const generator = { ...live.summary.generator, limited: true, reason };
    const summary = { ...live.summary, generator };
    const lines = renderDashboard({ ...live, summary }, columns, rows).lines();
    const from = lines.findIndex((text) => text.includes("load generator"));
    const left = lines[from]?.lastIndexOf("─ load generator") ?? 0;
    const panel = lines.slice(from + 1, -1).map((text) => text.slice(left).trim());
    expect(panel.join(" ")).toContain(`! the limit is here: ${reason}`);
  });

  it.each([
    ["dc1", 200],
    ["europe-west-frankfurt-production-zone-3", 80],
    ["europe-west-frankfurt-production-zone-3", 120],
  ])(
    "names datacenter %s of a run over several, %d columns wide, with its number",
    (name, columns) => {
      const live = syntheticRun(16, SHOP);
      const { generator } = live.summary;
      const [first] = generator.cores;
      if (first === undefined) throw new Error("there is a core");
      const cores = [0, 1].map((core) => ({ ...first, core, cpu: 0.43 }));
      const summary = { ...live.summary, generator: { ...generator, limited: false, cores } };
      const datacenters = [name, "dc2"];
      const lines = renderDashboard({ ...live, summary, datacenters }, columns, 60).lines();
      const text = lines.join("\n");
      expect(text).toContain("datacenters 2/2");
      expect(lines.filter((line) => / (europe-west|dc1|dc2).*43 %/.test(line))).toHaveLength(2);
      expect(text).not.toMatch(/core [01]|cores \d/);
    },
  );

  it("shows no values before anything was measured", () => {
    const live = syntheticRun(16, SHOP);
    const empty = { atSeconds: [], requests: [], failed: [], p50: [], p95: [], p99: [] };
    const none = { count: 0, min: 0, mean: 0, p50: 0, p75: 0, p90: 0, p95: 0 };
    const times = { ...none, p99: 0, p99_9: 0, p99_99: 0, max: 0 };
    const { generator, workflows } = live.summary;
    const cores = generator.cores.map((core) => ({ ...core, cpu: 0, residentBytes: 0 }));
    const summary = {
      ...live.summary,
      generator: { ...generator, cpu: 0, lagMsP99: 0, cores },
      workflows: workflows.map((workflow) => ({
        ...workflow,
        steps: workflow.steps.map((step) => ({
          ...step,
          latencyMs: times,
          firstByteMs: times,
          series: { ...step.series, ...empty },
        })),
      })),
    };
    const quiet = live.workflows.map((workflow) => ({
      ...workflow,
      steps: workflow.steps.map((step) => ({ ...step, p50: 0, p95: 0, p99: 0 })),
    }));
    const text = renderDashboard({ ...live, summary, workflows: quiet }, 200, 60)
      .lines()
      .join("\n");
    expect(text).not.toMatch(/(?<![\d.])0 (ms|B)|0\.25|0\.75/);
    expect(text).toContain("memory –");
    expect(text).toContain("busiest core –");
  });

  it.each([
    [1, 1, "1 VU "],
    [12, 14, "12/14 VUs "],
    [16, 14, "16→14 VUs "],
    [0, 1, "0/1 VU "],
    [16, null, "16 VUs "],
  ])("shows %d users with a target of %s", (activeVus, targetVus, expected) => {
    const live = syntheticRun(16, OPEN);
    const workflows = live.workflows.map((one) => ({ ...one, activeVus, targetVus }));
    const grid = renderDashboard({ ...live, workflows }, 120, 40, EMPTY_SCENE);
    expect(grid.lines().join("\n")).toContain(` ${expected}`);
  });

  it("shows the target of an open model as a line in the chart", async () => {
    const history = new History();
    for (let elapsed = 0.5; elapsed <= 12; elapsed += 0.5)
      history.observe(syntheticRun(elapsed, OPEN));
    const { targets, arrivals } = history;
    await expect(await shown(80, 24, 12, OPEN, { targets, arrivals })).toMatchFileSnapshot(
      "testdata/open-80x24.txt",
    );
  });

  it("distinguishes steps whose workflows have long names", async () => {
    const long = "checkout of returning customers in all regions";
    const workflows = SHOP.workflows.map((workflow) => ({
      ...workflow,
      name: `${workflow.name} ${long}`,
    }));
    for (const width of [80, 120]) {
      const screen = await shown(width, 40, 16, { ...SHOP, workflows });
      for (const step of ["search", "pay", "receipt"]) expect(screen).toContain(`… › ${step}`);
    }
  });

  it("shows the help page over everything", async () => {
    const screen = await shown(80, 24, 16, SHOP, { help: true });
    expect(screen).toContain("╭─ keys ─");
    expect(screen).toContain("stop gracefully, with results");
  });

  it("reports when the generator is the limit, and what was lost", async () => {
    const live = syntheticRun(16);
    const generator = {
      ...live.summary.generator,
      limited: true,
      reason: "core 0 was busy 99 % of the time",
    };
    const lost = [
      {
        core: 1,
        atSeconds: 3.2,
        what: "executor core 1 ended with SIGKILL",
        cost: "32 virtual users",
      },
    ];
    const grid = renderDashboard(
      { ...live, summary: { ...live.summary, generator, lost } },
      120,
      40,
    );
    const text = grid.lines().join("\n");
    expect(text).toContain("! the limit is here: core 0 was b");
    expect(text).toContain("lost: executor core 1 end… at 3.20 s");
  });
});

describe("more than fits", () => {
  const many = {
    ...SHOP,
    workflows: [
      { name: "big", steps: Array.from({ length: 30 }, (_, i) => `step ${i}`), target: null },
    ],
  };

  it("cycles every three seconds, step by step (TUI-3)", () => {
    const at = (nowMs: number) =>
      renderDashboard(syntheticRun(16, many), 80, 24, { ...EMPTY_SCENE, nowMs })
        .lines()
        .join("\n");
    expect(at(0)).toContain("latency of step 0 ");
    expect(at(2_999)).toContain("latency of step 0 ");
    expect(at(3_000)).toContain("latency of step 1 ");
    expect(at(87_000)).toContain("of 30");
    expect(at(87_000)).toContain("▸ step 29");
  });

  it("stays on the step chosen by hand", () => {
    const scene = { ...EMPTY_SCENE, nowMs: 50_000, pinned: -1 };
    expect(renderDashboard(syntheticRun(16, many), 80, 24, scene).lines().join("\n")).toContain(
      "▸ step 29",
    );
  });
});

describe("any run on any terminal", () => {
  it("is drawn without an error and inside the grid", () => {
    const scene = fc.record({
      nowMs: fc.nat(1e9),
      pinned: fc.option(fc.integer()),
      help: fc.boolean(),
      report: fc.boolean(),
      keys: fc.boolean(),
      messages: fc.array(name, { maxLength: 8 }),
      notice: fc.option(name),
      targets: fc.constant([{ atSeconds: 0, perSecond: 100 }]),
      arrivals: fc.constant(new Map([["login", 3]])),
    });
    const columns = fc.integer({ min: 1, max: 250 });
    const rows = fc.integer({ min: 1, max: 80 });
    fc.assert(
      fc.property(anyRun, scene, columns, rows, (live, given, width, height) => {
        const grid = renderDashboard(live, width, height, given);
        expect(grid.codes.length).toBe(width * height);
        for (let at = 0; at < grid.codes.length; at++) {
          const code = grid.codes[at] ?? -1;
          const style = grid.styles[at] ?? -1;
          // Plain conditions: an expect per cell would take minutes.
          if (style >= STYLE_COUNT) throw new Error(`style ${style} at ${at}`);
          if (code === TAIL ? charWidth(grid.codes[at - 1] ?? 0) !== 2 : charWidth(code) === 0) {
            throw new Error(`code ${code} at ${at}`);
          }
        }
      }),
      { numRuns: 400 },
    );
  });

  it("distributes exactly the available rows", () => {
    const need = fc.nat(60);
    const needs = fc.record({
      verdicts: need.map((n) => n + 1),
      workflows: need,
      steps: need,
      list: need,
      messages: need,
    });
    fc.assert(
      fc.property(fc.integer({ min: 16, max: 120 }), needs, (rows, wanted) => {
        const { verdicts, workflows, charts, steps, list, messages, gap } = shareRows(rows, wanted);
        expect(2 + verdicts + workflows + charts + steps + list + messages + 3 * gap).toBe(rows);
      }),
    );
  });
});
