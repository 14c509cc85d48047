/**
 * `npm run bench:http`: Hyperscale beside its peers, in CPU time per request. The method and how to
 * read the table are in README.md beside this file.
 *
 *     --only rotation,https,cores,idle,terminal   sections to run (default: all)
 *     --rotations 15  --slice 400                 length of the rotation
 *     --seed N                                    order of the tools
 */

import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import { Random } from "../../src/core/base/random.ts";
import { type Figure, printFigures, printResults, ratioFigure } from "./figures.ts";
import { measureIdle } from "./idle.ts";
import { isOnPath } from "./processes.ts";
import { rotate, type Tool, type ToolResult } from "./rotation.ts";
import { startSecureTarget } from "./secure-target.ts";
import { startTarget, type Target } from "./target.ts";
import { measureTerminal } from "./terminal.ts";
import {
  AUTOCANNON,
  BARE_NODE,
  FLOW_CONSTANT,
  FLOW_TOKEN,
  FUNCTION_STEP,
  hyperscale,
  K6,
  PREPARED,
  peersAndOurs,
  secureTools,
  WRK,
} from "./tools.ts";

const TARGET_CORE = 0;
const GENERATOR_CORE = 1;
const WARM_UP_MS = 1_000;
/** Load average from which on other programs are likely to interfere. */
const BUSY_LOAD = 0.5;
const SECTIONS = ["rotation", "https", "cores", "idle", "terminal"] as const;
type Section = (typeof SECTIONS)[number];

interface Settings {
  readonly sections: readonly Section[];
  readonly rotations: number;
  readonly sliceMs: number;
  readonly seed: string;
}

async function main(): Promise<void> {
  const settings = readSettings();
  const [load = 0] = loadavg();
  if (load > BUSY_LOAD) {
    process.stdout.write(
      `Note: the load average is ${load.toFixed(1)}; other work shares the cores, intervals will be wide.\n`,
    );
  }
  const figures: Figure[] = [];
  if (settings.sections.includes("rotation")) figures.push(...(await sideBySide(settings)));
  if (settings.sections.includes("https")) figures.push(...(await overTls(settings)));
  if (settings.sections.includes("cores")) figures.push(...(await twoCores(settings)));
  if (settings.sections.includes("idle")) figures.push(...(await measureIdle(progress)));
  if (settings.sections.includes("terminal")) figures.push(await measureTerminal(progress));
  progress("");
  printFigures(figures);
}

function readSettings(): Settings {
  const { values } = parseArgs({
    options: {
      only: { type: "string", default: SECTIONS.join(",") },
      rotations: { type: "string", default: "15" },
      slice: { type: "string", default: "400" },
      seed: { type: "string", default: String(Date.now()) },
    },
  });
  const wanted = values.only.split(",");
  const unknown = wanted.find((name) => !SECTIONS.some((known) => known === name));
  const rotations = Number(values.rotations);
  const sliceMs = Number(values.slice);
  if (unknown !== undefined || !(rotations >= 2) || !(sliceMs >= 50)) {
    process.stderr.write(
      `--only takes ${SECTIONS.join(",")}; --rotations at least 2; --slice at least 50 ms\n`,
    );
    process.exit(2);
  }
  const sections = SECTIONS.filter((name) => wanted.includes(name));
  return { sections, rotations, sliceMs, seed: values.seed };
}

/** One line that overwrites itself in a terminal, and plain lines elsewhere. */
function progress(line: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${line}`);
  else if (line !== "" && !line.startsWith("rotation")) process.stderr.write(`${line}\n`);
}

async function sideBySide(settings: Settings): Promise<readonly Figure[]> {
  const random = new Random(settings.seed);
  const results = await compare("http", peersAndOurs, startTarget, { settings, random });
  const against = (name: string, ours: string, theirs: string, must: number, aim: number): Figure =>
    ratioFigure(name, { results, ours, theirs, must, aim, random });
  return [
    against("prepared step / bare Node loop", PREPARED, BARE_NODE, 1.08, 1.04),
    against("prepared step / wrk", PREPARED, WRK, 1.1, 1.05),
    against("function step with check / wrk", FUNCTION_STEP, WRK, 1.3, 1.2),
    against("flow of 3 constant calls / wrk, per call", FLOW_CONSTANT, WRK, 1.25, 1.15),
    against("flow with token, route and JSON / wrk, per call", FLOW_TOKEN, WRK, 1.4, 1.3),
    against("function step with check / autocannon", FUNCTION_STEP, AUTOCANNON, 0.75, 0.55),
    against("function step with check / k6", FUNCTION_STEP, K6, 0.2, 0.15),
  ];
}

async function overTls(settings: Settings): Promise<readonly Figure[]> {
  const random = new Random(settings.seed);
  const results = await compare("https", secureTools, startSecureTarget, { settings, random });
  const goals = { must: 1.12, aim: 1.05, random };
  return [
    ratioFigure("prepared step / wrk, https", { results, ours: PREPARED, theirs: WRK, ...goals }),
  ];
}

/** One rotation with the target and the tools on a core each, and its table. */
async function compare(
  scheme: string,
  tools: (url: string, core: number | undefined) => readonly Tool[],
  start: (core: number | undefined) => Promise<Target>,
  { random, settings }: { readonly settings: Settings; readonly random: Random },
): Promise<readonly ToolResult[]> {
  const { rotations, sliceMs } = settings;
  const pinned = isOnPath("taskset");
  const target = await start(pinned ? TARGET_CORE : undefined);
  const options = { rotations, sliceMs, warmUpMs: WARM_UP_MS, random, log: progress };
  const results = await withTarget(target, () =>
    rotate(tools(target.url, pinned ? GENERATOR_CORE : undefined), target, options),
  );
  const where = pinned
    ? `target on core ${TARGET_CORE}, generators on core ${GENERATOR_CORE}`
    : "unpinned: there is no taskset here";
  process.stdout.write(
    `\nCPU per request, ${scheme}, 64 connections, HTTP/1.1 keep-alive, 11-byte answer\n` +
      `(${rotations} rotations of ${sliceMs} ms, ${where}, target: ${target.made})\n\n`,
  );
  printResults(results, random);
  return results;
}

/** Unpinned, because two executor cores and the target do not fit on one core. */
async function twoCores(settings: Settings): Promise<readonly Figure[]> {
  const target = await startTarget(undefined);
  const [one, two] = ["one core", "two cores"];
  const random = new Random(settings.seed);
  const results = await withTarget(target, () =>
    rotate(
      [
        { name: one, start: hyperscale("prepared.mjs", target.url, { cores: 1 }) },
        { name: two, start: hyperscale("prepared.mjs", target.url, { cores: 2 }) },
      ],
      target,
      { ...settings, warmUpMs: WARM_UP_MS, random, log: progress },
    ),
  );
  const name = "two executor cores / one";
  return [ratioFigure(name, { results, ours: two, theirs: one, must: 1.1, aim: 1.05, random })];
}

async function withTarget<Value>(target: Target, work: () => Promise<Value>): Promise<Value> {
  try {
    return await work();
  } finally {
    await target.close();
  }
}

await main();
