/**
 * CPU of the process that coordinates a run, part by part, at 100,000 calls per second: two processes report 50 steps
 * ten times per second. Their frames are those of real recorders; time is that of the frames, so that a busy machine
 * changes little: only CPU time of this process is counted.
 * Run: npx tsx bench/micro/coordinator.ts [seconds]
 */

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { manifest } from "../../src/core/load/job/testing/manifest.ts";
import { RunAggregate } from "../../src/core/load/results/run-aggregate.ts";
import { ERROR_KINDS } from "../../src/protocols/protocol.ts";
import { openReporting } from "../../src/reporters/registry.ts";

const SECONDS = Number(process.argv[2] ?? 300);
const CORES = 2;
const FRAMES_PER_SECOND = 10;
/** Frames between updates of a screen and of reporters. */
const SCREEN_EVERY = 5;
const REPORT_EVERY = 10;
/** For the sockets, between two frames of the reporters. */
const SEND_MS = 5;

const here = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const spentUs = { "frames taken in": 0, "figures of a screen": 0, "five reporters": 0 };
type Part = keyof typeof spentUs;

function cpuUs(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

async function counted(part: Part, work: () => Promise<void> | void): Promise<void> {
  const before = cpuUs();
  await work();
  spentUs[part] += cpuUs() - before;
}

class Core {
  readonly #child: ChildProcess;

  constructor(number: number) {
    this.#child = fork(here("frame-source.ts"), [String(number)], { serialization: "advanced" });
  }

  /** The frame of a window, against the acknowledged one. */
  async frame(window: number, held: number): Promise<Uint8Array> {
    const reply = once(this.#child, "message");
    this.#child.send({ window, held });
    const [bytes] = (await reply) as [Uint8Array];
    return bytes;
  }

  end(): void {
    this.#child.kill();
  }
}

async function receivers(): Promise<{ child: ChildProcess; http: number; tcp: number }> {
  const child = fork(here("../reporters/receivers.ts"), { stdio: "inherit" });
  const ports = await new Promise((resolve) => child.once("message", resolve));
  return { child, ...(ports as { http: number; tcp: number }) };
}

const { child, http, tcp } = await receivers();
const url = `http://127.0.0.1:${http}`;
const reporting = await openReporting(
  [
    `influxdb=${url},database=load,every=1s`,
    `prometheus=${url},every=1s`,
    `otlp=${url},every=1s`,
    `graphite=tcp://127.0.0.1:${tcp},every=1s`,
    "ndjson=/dev/null,every=1s",
  ],
  { env: {}, onProblem: (reporter, problem) => process.stderr.write(`${reporter}: ${problem}\n`) },
);
await reporting.start({ name: "coordinator", tags: {} });
const aggregate = new RunAggregate({
  ...{ runId: "1", name: "coordinator", tags: {}, thresholds: [], abortAfterMs: null },
  manifests: [manifest("flow")],
  errorKinds: ERROR_KINDS,
  startedAt: new Date(Date.now() - SECONDS * 1_000).toISOString(),
  environment: {
    ...{ hyperscale: "", node: process.version, platform: "", cpuModel: "", command: "" },
    ...{ cpus: 2, cores: CORES },
  },
});
const cores = Array.from({ length: CORES }, (_, number) => new Core(number));
aggregate.workflowStarted("flow", [0, 1]);
const vitals = { cpu: 0.5, residentBytes: 1e8, activeUsers: 800 };
const held = new Array<number>(CORES).fill(0);
const before = cpuUs();
const residentMiB: number[] = [];
for (let window = 1; window <= SECONDS * FRAMES_PER_SECOND; window++) {
  const now = window * 100;
  if (window === SECONDS || window === SECONDS * FRAMES_PER_SECOND)
    residentMiB.push(Math.round(process.memoryUsage.rss() / 1_024 / 1_024));
  aggregate.setTime(now);
  await counted("frames taken in", async () => {
    const frames = cores.map((core, number) => core.frame(window, held[number] ?? 0));
    for (const [number, bytes] of (await Promise.all(frames)).entries())
      held[number] = aggregate.frame("flow", number, bytes, vitals);
  });
  if (window % SCREEN_EVERY === 0)
    await counted("figures of a screen", () => {
      const { summary } = aggregate.live("running", "figures");
      // Computed on access: a screen shows that of one step.
      if (summary.workflows[0]?.steps[0]?.histogram.count.length === 0) throw new Error("no calls");
    });
  if (window % REPORT_EVERY === 0)
    await counted("five reporters", async () => {
      reporting.progress(aggregate.progress(), now);
      await sleep(SEND_MS);
    });
}
const all = cpuUs() - before;
const summary = aggregate.summary({ interrupted: false, ended: true, detail: "all" });
const { reports = [] } = await reporting.finish(summary);
child.kill();
for (const core of cores) core.end();
for (const [part, us] of Object.entries(spentUs))
  console.log(`${part}: ${(us / SECONDS / 10_000).toFixed(2)} % of a core`);
console.log(`together: ${(all / SECONDS / 10_000).toFixed(2)} % of a core`);
console.log(`resident: ${residentMiB.join(" MiB after a tenth, ")} MiB at the end`);
for (const { dropped, problem, reporter, sent } of reports)
  console.log(`${reporter}: ${sent} points, ${dropped} dropped${problem ? `: ${problem}` : ""}`);
