/**
 * Plays a made-up run in the real terminal, to look at the picture and to measure what it costs.
 *
 *   npx tsx tools/ui-preview.ts [--ui full|ci|none] [--seconds 30] [--steps 7] [--rate 1000] [--pass]
 *                               [--workflows 12] [--long] [--wait]     many, long names, before any data
 *   npx tsx tools/ui-preview.ts --cost          CPU of the view alone, at 200×60 and 20 pictures a second
 */

import { parseArgs } from "node:util";
import type { RunControl } from "../src/core/load/results/live.ts";
import type { OutputStream } from "../src/ui/ports.ts";
import {
  SHOP,
  type SyntheticOptions,
  syntheticRun,
  syntheticSummary,
} from "../src/ui/testing/synthetic.ts";
import { createView } from "../src/ui/view.ts";

const UPDATE_MS = 50;

const { values } = parseArgs({
  options: {
    ui: { type: "string", default: "auto" },
    seconds: { type: "string", default: "30" },
    steps: { type: "string", default: "7" },
    rate: { type: "string" },
    pass: { type: "boolean", default: false },
    workflows: { type: "string", default: "2" },
    long: { type: "boolean", default: false },
    wait: { type: "boolean", default: false },
    cost: { type: "boolean", default: false },
  },
});

/** One step is what URL mode shows; more are a shop with two workflows. */
function optionsOf(seconds: number, steps: number): SyntheticOptions {
  const target = values.rate === undefined ? null : Number(values.rate);
  if (steps === 1) {
    const workflow = { name: "http://127.0.0.1:8080/", steps: ["GET /"], target };
    return { totalSeconds: seconds, failing: !values.pass, workflows: [workflow] };
  }
  const extra = Array.from(
    { length: Math.max(0, steps - 7) },
    (_, index) => `extra step ${index + 1}`,
  );
  const [browse, checkout] = SHOP.workflows;
  if (browse === undefined || checkout === undefined) return SHOP;
  const more = Array.from({ length: Number(values.workflows) - 2 }, (_, index) => ({
    ...browse,
    name: `${browse.name} ${index + 2}`,
  }));
  const workflows = [browse, { ...checkout, steps: [...checkout.steps, ...extra] }, ...more];
  return {
    totalSeconds: seconds,
    failing: !values.pass,
    workflows: values.long ? workflows.map(withLongNames) : workflows,
  };
}

const LONG = "/api/v2/customers/{customer}/orders/{order}/items?expand=prices,taxes,shipping";

function withLongNames(workflow: SyntheticOptions["workflows"][number]) {
  return {
    ...workflow,
    name: `${workflow.name} of returning customers in all regions`,
    steps: workflow.steps.map((step) => `${step} ${LONG}`),
  };
}

const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function play(options: SyntheticOptions): Promise<void> {
  const view = createView({
    mode: values.ui as "auto",
    stdout: process.stdout,
    stdin: process.stdin,
    env: process.env,
    report: { isWanted: false, problem: null },
  });
  let paused = false;
  let stopped = false;
  let interrupted = false;
  process.once("SIGINT", () => {
    interrupted = true;
    stopped = true;
  });
  view.start((command: RunControl) => {
    view.message(`control: ${JSON.stringify(command)}`);
    if (command.kind === "pause") paused = true;
    if (command.kind === "resume") paused = false;
    if (command.kind === "stop") stopped = true;
  });
  // Screen during a long set-up or warm-up.
  const waiting = { ...syntheticRun(0, options), phase: "setting up" } as const;
  while (values.wait && !stopped) {
    view.update(waiting);
    await wait(UPDATE_MS);
  }
  let elapsed = 0;
  while (elapsed < options.totalSeconds && !stopped) {
    await wait(UPDATE_MS);
    if (!paused) elapsed += UPDATE_MS / 1_000;
    const live = syntheticRun(elapsed, options);
    view.update(paused ? { ...live, phase: "paused" } : live);
    if (!paused && Math.round(elapsed * 20) % 80 === 0)
      view.message(`a line from the workflow at ${elapsed.toFixed(1)} s`);
  }
  const summary = syntheticSummary(elapsed, options);
  view.finish({
    summary: interrupted
      ? { ...summary, verdict: "interrupted", reasons: ["interrupted by SIGINT"] }
      : summary,
    files: ["report.html", "summary.json", "junit.xml"].map(
      (name) => `hyperscale-results/preview/${name}`,
    ),
  });
}

/** The runs are made beforehand, so that only the view is measured. */
async function measureCost(options: SyntheticOptions): Promise<void> {
  const seconds = 10;
  let bytes = 0;
  const stdout: OutputStream = {
    isTTY: true,
    columns: 200,
    rows: 60,
    write(text) {
      bytes += Buffer.byteLength(text);
      return true;
    },
    on: () => undefined,
    off: () => undefined,
  };
  // One second of runs, repeatedly: keeping ten would measure the garbage collector.
  const lives = Array.from({ length: 20 }, (_, index) =>
    syntheticRun(options.totalSeconds - 1 + index / 20, options),
  );
  const view = createView({
    mode: "full",
    stdout,
    stdin: process.stdin,
    env: { COLORTERM: "truecolor" },
  });
  view.start(() => {});
  const loop = async (update: boolean): Promise<number> => {
    const before = process.cpuUsage();
    const startedAt = performance.now();
    for (let turn = 0; turn < seconds * 20; turn++) {
      const live = lives[turn % lives.length];
      if (update && live !== undefined) view.update(live);
      await wait(UPDATE_MS);
    }
    const used = process.cpuUsage(before);
    return (used.user + used.system) / 1_000 / (performance.now() - startedAt);
  };
  await loop(true);
  bytes = 0;
  const busy = await loop(true);
  const perSecond = bytes / seconds;
  view.finish(undefined);
  const idle = await loop(false);
  const percent = (share: number): string => `${(share * 100).toFixed(2)} %`;
  process.stdout.write(
    `200×60, 20 pictures/s, ${options.workflows.flatMap(({ steps }) => steps).length} steps: ` +
      `${percent(busy - idle)} of one core (${percent(busy)} with the loop itself), ` +
      `${(perSecond / 1_000).toFixed(1)} kB/s to the terminal\n`,
  );
}

const options = optionsOf(Number(values.seconds), Number(values.steps));
if (values.cost) await measureCost(options);
else await play(options);
