/**
 * CPU of the process that coordinates a run, part by part, at 100,000 calls per second: two cores tell of 50
 * steps ten times a second. The frames are those of real recorders; time is that of the frames, so that five
 * minutes take some twenty seconds and a busy machine changes little: only CPU time is counted.
 * Run: npx tsx bench/micro/coordinator.ts [seconds]
 */

import { type ChildProcess, fork } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Random } from "../../src/core/base/random.ts";
import { manifest } from "../../src/core/run/job/testing/manifest.ts";
import { RunAggregate } from "../../src/core/run/results/run-aggregate.ts";
import { StatsRecorder } from "../../src/core/run/stats/stats-recorder.ts";
import { ERROR_KINDS } from "../../src/protocols/protocol.ts";
import { openReporting } from "../../src/reporters/registry.ts";

const SECONDS = Number(process.argv[2] ?? 300);
const CORES = 2;
const STEPS = 50;
const CALLS_PER_SECOND = 100_000;
const FRAMES_PER_SECOND = 10;
const CALLS = CALLS_PER_SECOND / CORES / STEPS / FRAMES_PER_SECOND;
const VALUES = 1 << 16;
/** After so many frames a screen is given new figures, and reporters theirs. */
const SCREEN_EVERY = 5;
const REPORT_EVERY = 10;
/** For the sockets, between two frames of the reporters. */
const SEND_MS = 5;

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

/** Log-normal around 10 ms, in microseconds. */
function latencies(): Float64Array {
  const random = new Random("coordinator");
  return Float64Array.from({ length: VALUES }, () => {
    let sum = -6;
    for (let draw = 0; draw < 12; draw++) sum += random.float();
    return 10_000 * Math.exp(sum);
  });
}

class Core {
  readonly number: number;
  readonly #stats = new StatsRecorder({ errorKinds: ERROR_KINDS.length, corrected: false });
  readonly #values = latencies();
  #next: number;

  constructor(number: number) {
    this.number = number;
    this.#next = number * 997;
  }

  frame(window: number): Uint8Array {
    for (let at = 0; at < STEPS; at++) {
      const step = this.#stats.step(this.#stats.stepNumber(`step ${at + 1}`, "http"));
      for (let call = 0; call < CALLS; call++) {
        const latency = this.#values[this.#next++ & (VALUES - 1)] ?? 0;
        step.record(-1, 200, latency, latency, latency * 0.9, -1, -1, 238, 57);
      }
    }
    this.#stats.seal(window, { users: 800, target: 800, cpuMs: 90, lagMsMax: 1 });
    const moment = { measuredMs: window * 100, warmingUp: false, target: 800, arrivalsWaiting: 0 };
    return this.#stats.frame(moment, false);
  }

  acknowledged(held: number): void {
    this.#stats.acknowledged(held);
  }
}

async function receivers(): Promise<{ child: ChildProcess; http: number; tcp: number }> {
  const entry = fileURLToPath(new URL("../reporters/receivers.ts", import.meta.url));
  const child = fork(entry, { stdio: "inherit" });
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
for (let window = 1; window <= SECONDS * FRAMES_PER_SECOND; window++) {
  const now = window * 100;
  aggregate.setTime(now);
  for (const core of cores) {
    const bytes = core.frame(window);
    await counted("frames taken in", () =>
      core.acknowledged(aggregate.frame("flow", core.number, bytes, vitals)),
    );
  }
  if (window % SCREEN_EVERY === 0)
    await counted("figures of a screen", () => void aggregate.live("running", "figures"));
  if (window % REPORT_EVERY === 0)
    await counted("five reporters", async () => {
      reporting.progress(aggregate.progress(), now);
      await sleep(SEND_MS);
    });
}
const summary = aggregate.summary({ interrupted: false, ended: true, detail: "all" });
const { reports = [] } = await reporting.finish(summary);
child.kill();
for (const [part, us] of Object.entries(spentUs))
  console.log(`${part}: ${(us / SECONDS / 10_000).toFixed(2)} % of a core`);
const all = Object.values(spentUs).reduce((sum, us) => sum + us, 0);
console.log(`together: ${(all / SECONDS / 10_000).toFixed(2)} % of a core`);
for (const { dropped, problem, reporter, sent } of reports)
  console.log(`${reporter}: ${sent} points, ${dropped} dropped${problem ? `: ${problem}` : ""}`);
