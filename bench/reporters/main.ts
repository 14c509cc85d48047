/**
 * `npm run bench:reporters`: the cost of five reporters for the process that coordinates a run, and whether they keep
 * up. A real run of 50 steps on 2 executor cores, so 2 x 50 x 10 metrics of steps arrive per second, of 100,000 calls
 * where the machine can make them; every reporter reports each second, and a program reads the live metrics as a screen
 * does. A busy machine makes fewer: `bench/micro/coordinator.ts` makes the frames of 100,000 calls per second without
 * the calls.
 *
 *     npm run bench:reporters                          300 seconds
 *     npm run bench:reporters -- --seconds 60 --json
 *
 * CPU is that of this process alone, without the cost of measuring: cores and receivers are processes of their own. The
 * same run without reporters comes first, a fifth as long, for comparison.
 *
 * Memory is reported twice: retained after a garbage collection, at every fifth of the run, and resident after a tenth
 * of it and at its end, which depends on how late a busy machine collects. Windows over time fill up to their bound in
 * the first two minutes (`src/core/load/stats/window-store.ts`), so flat means flat from there on.
 */

import { type ChildProcess, fork } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { LiveRun } from "../../src/core/load/results/live.ts";
import type { RunSummary } from "../../src/core/load/results/model.ts";

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "300" },
    json: { type: "boolean", default: false },
  },
});
const SECONDS = Number(values.seconds);
const here = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const MIB = 1_024 * 1_024;
setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;
// The built package: executor cores are processes, which cannot load TypeScript.
const { run } = (await import(
  new URL("../../dist/index.js", import.meta.url).href
)) as typeof import("../../src/index.ts");

interface Figures {
  readonly seconds: number;
  /** Share of one core, of this process. */
  readonly cpuShare: number;
  /** After a garbage collection, at every fifth of the run. */
  readonly retainedMiB: readonly number[];
  readonly rssMiB: { readonly atTenth: number; readonly atEnd: number; readonly most: number };
  readonly requestsPerSecond: number;
  readonly steps: number;
  readonly reports: RunSummary["reports"];
}

async function measured(seconds: number, report: readonly string[]): Promise<Figures> {
  const test = run(here("flow.ts"), { duration: `${seconds}s`, cores: 2, report });
  const memory = new Memory(seconds);
  let [began, before] = [0, process.cpuUsage()];
  let watch: NodeJS.Timeout | undefined;
  for await (const event of test) {
    if (event.kind === "message") process.stderr.write(`${event.line}\n`);
    if (event.kind === "live") readLive(event.live);
    if (event.kind !== "started") continue;
    began = performance.now();
    before = process.cpuUsage();
    watch = setInterval(() => memory.sample(performance.now() - began), 500);
  }
  const summary = await test.summary;
  clearInterval(watch);
  const { system, user } = process.cpuUsage(before);
  const wallMs = performance.now() - began;
  return {
    seconds: wallMs / 1_000,
    cpuShare: ((system + user) / 1_000 - memory.cpuMs) / wallMs,
    ...memory.end(),
    requestsPerSecond: summary.totals?.ratePerSecond ?? 0,
    steps: summary.workflows.reduce((sum, { steps }) => sum + steps.length, 0),
    reports: summary.reports ?? [],
  };
}

/** As a screen does: series of all steps are computed for every picture, the histogram of one step when it is read. */
function readLive({ summary }: LiveRun): void {
  const [step] = summary.workflows.flatMap(({ steps }) => steps);
  if (step !== undefined && step.histogram.count.length > step.requests)
    throw new Error("a histogram has more cells than calls");
}

class Memory {
  /** CPU time spent on reading. */
  cpuMs = 0;
  readonly #seconds: number;
  readonly #retainedMiB: number[] = [];
  #atTenth = 0;
  #most = 0;

  constructor(seconds: number) {
    this.#seconds = seconds;
  }

  sample(elapsedMs: number): void {
    const before = process.cpuUsage();
    const rss = process.memoryUsage.rss();
    this.#most = Math.max(this.#most, rss);
    if (this.#atTenth === 0 && elapsedMs >= this.#seconds * 100) this.#atTenth = rss;
    const fifths = elapsedMs / (this.#seconds * 200);
    if (this.#retainedMiB.length < Math.min(4, Math.floor(fifths)))
      this.#retainedMiB.push(retained());
    const { system, user } = process.cpuUsage(before);
    this.cpuMs += (system + user) / 1_000;
  }

  end(): Pick<Figures, "retainedMiB" | "rssMiB"> {
    const atEnd = process.memoryUsage.rss() / MIB;
    return {
      retainedMiB: [...this.#retainedMiB, retained()],
      rssMiB: { atTenth: this.#atTenth / MIB, atEnd, most: this.#most / MIB },
    };
  }
}

function retained(): number {
  collect();
  const { arrayBuffers, heapUsed } = process.memoryUsage();
  return (heapUsed + arrayBuffers) / MIB;
}

/** Accepts everything, in a process of its own. */
async function receivers(): Promise<{ child: ChildProcess; http: number; tcp: number }> {
  const child = fork(here("receivers.ts"), { stdio: "inherit" });
  const { http, tcp } = await new Promise<{ http: number; tcp: number }>((resolve, reject) => {
    child.once("message", (ports) => resolve(ports as { http: number; tcp: number }));
    child.once("exit", () => reject(new Error("the receivers ended")));
  });
  return { child, http, tcp };
}

const folder = mkdtempSync(join(tmpdir(), "hyperscale-bench-"));
const { child, http, tcp } = await receivers();
try {
  const url = `http://127.0.0.1:${http}`;
  const without = await measured(Math.max(10, SECONDS / 5), []);
  const withFive = await measured(SECONDS, [
    `influxdb=${url},database=load,every=1s`,
    `prometheus=${url},every=1s`,
    `otlp=${url},every=1s`,
    `graphite=tcp://127.0.0.1:${tcp},every=1s`,
    `ndjson=${join(folder, "points.ndjson")},every=1s`,
  ]);
  const machine = `${cpus().length} x ${cpus()[0]?.model ?? ""}, load ${loadavg()[0]?.toFixed(1)}`;
  if (values.json) console.log(JSON.stringify({ machine, without, withFive }));
  else {
    console.log(machine);
    console.log(line("without reporters", without));
    console.log(line("with five", withFive));
    for (const { dropped, problem, reporter, sent } of withFive.reports ?? [])
      console.log(
        `  ${reporter}: ${sent} points, ${dropped} dropped${problem ? `: ${problem}` : ""}`,
      );
  }
} finally {
  child.kill();
  rmSync(folder, { recursive: true, force: true });
}

function line(
  name: string,
  { cpuShare, requestsPerSecond, retainedMiB, rssMiB, seconds, steps }: Figures,
): string {
  const whole = (mib: number): string => mib.toFixed(0);
  return (
    `${name}: ${seconds.toFixed(0)} s, ${steps} steps, ${requestsPerSecond.toFixed(0)} calls/s, ` +
    `CPU ${(cpuShare * 100).toFixed(1)} % of a core, ` +
    `retained ${retainedMiB.map(whole).join(" → ")} MiB (every fifth), ` +
    `resident ${whole(rssMiB.atTenth)} MiB after a tenth, ${whole(rssMiB.atEnd)} at the end ` +
    `(most ${whole(rssMiB.most)})`
  );
}
