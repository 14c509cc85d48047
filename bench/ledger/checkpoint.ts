/**
 * `npm run bench:checkpoint`: how long a checkpoint blocks the event loop of a node with many jobs, on real files.
 *
 *     npm run bench:checkpoint [-- --jobs 50000 --dir DIR]
 *
 * A turn is the time between two checks of the event loop while the checkpoint is made. On a shared machine its wall
 * time includes that of other programs, so the CPU time of this thread is beside it (as Linux counts it). Each job has
 * eight events in its log, like a running one.
 */

import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type NodeId, nodeId } from "../../src/core/base/ids.ts";
import { Random } from "../../src/core/base/random.ts";
import type { GroupId, LogEntry } from "../../src/core/ledger/group/messages.ts";
import { EMPTY_IMAGE } from "../../src/core/ledger/group/state.ts";
import type { GroupImage } from "../../src/core/ledger/group/types.ts";
import { walConfig } from "../../src/core/ledger/log/limits.ts";
import { ANY_IDENTITY } from "../../src/core/ledger/log/segment.ts";
import { LEDGER_NODE_DEFAULTS, LEDGER_RULES } from "../../src/core/ledger/node/config.ts";
import { LedgerNode } from "../../src/core/ledger/node/node.ts";
import { snapshotSlices } from "../../src/core/ledger/node/recovery.ts";
import { LedgerStore } from "../../src/core/ledger/store/store.ts";
import type { StoreEvent, StoreInput } from "../../src/core/ledger/store/types.ts";
import { nodeClock } from "../../src/host/node-clock.ts";
import { checksum } from "../../src/ledger/log/checksum.ts";
import { FileDriver } from "../../src/ledger/log/file-driver.ts";
import { FileExecutor } from "../../src/ledger/log/file-executor.ts";

const { values } = parseArgs({
  options: {
    jobs: { type: "string", default: "50000" },
    dir: { type: "string", default: tmpdir() },
  },
});
const JOBS = Number(values.jobs);
const EVENTS = 8;
const EVENT_BYTES = 150;
const WALL = 1_700_000_000_000;

const members = ["n1", "n2", "n3"].map(nodeId);

function image(): GroupImage {
  const data = new Uint8Array(EVENT_BYTES).fill(7);
  const entries = Array.from({ length: EVENTS }, (_, seq): LogEntry => {
    const place = { seq, epoch: 1, view: 1, wall: WALL, logical: seq, members: [] };
    return { ...place, kind: "op", eventId: `n1/0123456789abc/${seq}`, data };
  });
  const views = { knownView: 1, lastNormalView: 1, commitMark: EVENTS - 1 };
  return { ...EMPTY_IMAGE, epoch: 1, members, ...views, entries };
}

function nodeWithJobs(): LedgerNode {
  const sites = members.map((node) => ({ node, region: "use1" }));
  const options = { self: nodeId("n1"), sites, config: LEDGER_NODE_DEFAULTS };
  const node = new LedgerNode({ ...options, boot: "b1", rules: LEDGER_RULES }, new Random(1));
  const images = new Map<GroupId, GroupImage>();
  for (let job = 0; job < JOBS; job++) {
    images.set(`use1-${WALL + job}-n1-00001` as GroupId, image());
  }
  const identities = new Map<NodeId, string>();
  node.recover({ images, archived: [], identities }, nodeClock.now(), WALL);
  return node;
}

/** CPU time of the main thread; the wall clock outside Linux. */
function cpuMs(): number {
  if (process.platform !== "linux") return performance.now();
  return Number(readFileSync("/proc/self/schedstat", "utf8").split(" ")[0]) / 1e6;
}

/** The longest CPU time of a slice. */
let sliceCpuMs = 0;

function* timed(slices: Iterator<Uint8Array, void>): Generator<Uint8Array, void> {
  for (;;) {
    const before = cpuMs();
    const next = slices.next();
    sliceCpuMs = Math.max(sliceCpuMs, cpuMs() - before);
    if (next.done === true) return;
    yield next.value;
  }
}

const node = nodeWithJobs();
const dataDir = mkdtempSync(join(values.dir, "hyperscale-bench-checkpoint-"));
for (const name of ["wal", "archive"]) mkdirSync(join(dataDir, name));
const store = new LedgerStore({
  identity: ANY_IDENTITY,
  log: { ...walConfig(), fullDisk: "wait" },
  checkpoint: { intervalEntries: 1e9, intervalMs: 1e9, keptMax: 1 },
  archiveKeepMs: 1e12,
  checksum,
});
const waiting = new Map<StoreEvent["kind"], () => void>();
let header = { slices: 0, bytes: 0 };
const driver = new FileDriver<StoreInput, StoreEvent>(
  store,
  new FileExecutor(dataDir),
  nodeClock,
  (event) => {
    if (event.kind === "checkpointCreated") header = event.header;
    waiting.get(event.kind)?.();
  },
);

function until(kind: StoreEvent["kind"], input: StoreInput): Promise<void> {
  return new Promise((resolve) => {
    waiting.set(kind, resolve);
    driver.step(input);
  });
}

/** The longest turn, by either clock. */
const longest = { wallMs: 0, cpuMs: 0 };
let watching = true;
function watch(last: { readonly wall: number; readonly cpu: number }): void {
  const now = { wall: performance.now(), cpu: cpuMs() };
  longest.wallMs = Math.max(longest.wallMs, now.wall - last.wall);
  longest.cpuMs = Math.max(longest.cpuMs, now.cpu - last.cpu);
  if (watching) setImmediate(() => watch(now));
}

try {
  await until("opened", { kind: "open" });
  // Recovered state was never appended by this process, and is all there is to keep.
  for (const effect of node.flush()) {
    if (effect.kind === "append") store.append(effect, nodeClock.now());
  }
  driver.step({ kind: "tick" });
  const source = {
    get appends(): number {
      return node.appends;
    },
    slices: () => timed(snapshotSlices(node)),
  };
  store.serve(source, nodeClock.now());
  const whole = cpuMs();
  for (const _ of snapshotSlices(node)) void _;
  const wholeMs = cpuMs() - whole;
  const started = performance.now();
  watch({ wall: started, cpu: cpuMs() });
  await until("checkpointEnded", { kind: "checkpoint", id: 1 });
  const tookMs = performance.now() - started;
  watching = false;
  await until("closed", { kind: "close" });
  await driver.stop();
  const load = loadavg()[0]?.toFixed(1);
  const what = `${JOBS.toLocaleString("en")} jobs of ${EVENTS} events`;
  process.stdout.write(`${what}, Node ${process.version}, load average ${load}

| | |
|---|---|
| all of it in one turn, CPU time | ${wholeMs.toFixed(0)} ms |
| longest slice, CPU time | ${sliceCpuMs.toFixed(1)} ms |
| longest turn of the event loop, CPU time | ${longest.cpuMs.toFixed(1)} ms |
| longest turn of the event loop, wall time | ${longest.wallMs.toFixed(1)} ms |
| whole checkpoint: ${header.slices} slices, ${(header.bytes / 1e6).toFixed(1)} MB | ${(tookMs / 1_000).toFixed(2)} s |
`);
} finally {
  rmSync(dataDir, { recursive: true, force: true });
}
