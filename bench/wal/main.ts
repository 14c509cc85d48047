/**
 * `npm run bench:wal`: performance of the write-ahead log on this machine, beside the limit of its disk.
 *
 *     npm run bench:wal                          everything, about a minute
 *     npm run bench:wal -- --dir DIR --seconds 3 --json
 *
 * The bound of a row is what a program would reach that did nothing but write batches of that size and call fdatasync:
 * entries per sync / time of one fdatasync, measured right after the row in the same directory. On a shared machine the
 * two see different disks: repeat it when it is quiet.
 */

import { execFileSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { cpus, loadavg, tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { WalConfig } from "../../src/core/ledger/log/limits.ts";
import { RECORD_TYPES } from "../../src/core/ledger/log/record-types.ts";
import { identityOf } from "../../src/core/ledger/log/segment.ts";
import { Wal } from "../../src/ledger/log/wal.ts";
import { measureSync } from "./disk.ts";

const { values } = parseArgs({
  options: {
    dir: { type: "string", default: tmpdir() },
    seconds: { type: "string", default: "4" },
    entries: { type: "string", default: "1000000" },
    json: { type: "boolean", default: false },
  },
});
const SECONDS = Number(values.seconds);
const ENTRIES = Number(values.entries);
const ENTRY_BYTES = 64;
const RECORD_BYTES = ENTRY_BYTES + 34;
const BATCH_BYTES = 58;
const OFFERED_PER_SECOND = 5_000;
const PRODUCERS = 1_000;

const payload = Buffer.alloc(ENTRY_BYTES, 7);
const identity = identityOf("bench", "wal");
const say = (text: string): void => void process.stderr.write(`${text}\n`);
const whole = (value: number): string => Math.round(value).toLocaleString("en");

async function withLog<Value>(
  config: Partial<WalConfig>,
  work: (log: Wal, directory: string) => Promise<Value>,
): Promise<Value> {
  const directory = await mkdtemp(join(values.dir, "hyperscale-bench-wal-"));
  try {
    const log = await Wal.open({ directory, identity, config });
    const value = await work(log, directory);
    await log.close();
    return value;
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

interface Rate {
  readonly perSecond: number;
  readonly perSync: number;
  readonly p50: number;
  readonly p99: number;
}

/** Producers that each append the next entry when the last is acknowledged. */
async function closedLoop(log: Wal, producers: number, seconds: number): Promise<Rate> {
  const before = log.status();
  const started = performance.now();
  const end = started + seconds * 1_000;
  const latencies: number[] = [];
  let done = 0;
  const produce = async (): Promise<void> => {
    for (let now = performance.now(); now < end; ) {
      await log.append(RECORD_TYPES.VSR_ENTRY, payload);
      const after = performance.now();
      if (done++ % 16 === 0) latencies.push(after - now);
      now = after;
    }
  };
  await Promise.all(Array.from({ length: producers }, produce));
  const elapsed = (performance.now() - started) / 1_000;
  await log.flush();
  const syncs = Math.max(1, log.status().syncs - before.syncs);
  return { perSecond: done / elapsed, perSync: done / syncs, ...percentiles(latencies) };
}

/**
 * Entries at a fixed pace, those of one millisecond together; latency counts from when each was due. The process sleeps
 * in between, as one does that waits for its clients.
 */
async function openLoop(log: Wal, perSecond: number, seconds: number): Promise<Rate> {
  const latencies: number[] = [];
  const before = log.status();
  const started = performance.now();
  const total = perSecond * seconds;
  const answers: Promise<void>[] = [];
  for (let sent = 0; sent < total; ) {
    const passedMs = Math.floor(performance.now() - started);
    const due = Math.min(total, (passedMs * perSecond) / 1_000);
    for (; sent < due; sent++) {
      const dueAt = started + Math.floor((sent * 1_000) / perSecond) + 1;
      const answer = log.append(RECORD_TYPES.VSR_ENTRY, payload);
      answers.push(answer.then(() => void latencies.push(performance.now() - dueAt)));
    }
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await Promise.all(answers);
  const syncs = log.status().syncs - before.syncs;
  const elapsed = (performance.now() - started) / 1_000;
  return { perSecond: total / elapsed, perSync: total / syncs, ...percentiles(latencies) };
}

function percentiles(samples: number[]): { readonly p50: number; readonly p99: number } {
  const sorted = samples.sort((a, b) => a - b);
  const at = (q: number): number => sorted[Math.ceil(sorted.length * q) - 1] ?? Number.NaN;
  return { p50: at(0.5), p99: at(0.99) };
}

interface BoundedRate extends Rate {
  readonly syncMs: number;
  readonly bound: number;
}

/** The group commit row: the disk's own time is measured in the same run, with batches of that size. */
async function groupCommit(config: Partial<WalConfig>, producers: number): Promise<BoundedRate> {
  return withLog(config, async (log, directory) => {
    await closedLoop(log, producers, 0.5);
    const rate = await closedLoop(log, producers, SECONDS);
    const bytes = Math.round(rate.perSync * RECORD_BYTES + BATCH_BYTES);
    const syncMs = measureSync(directory, bytes, 1_000);
    return { ...rate, syncMs, bound: rate.perSync / (syncMs / 1_000) };
  });
}

async function recovery(): Promise<{ readonly writtenMs: number; readonly recoveredMs: number }> {
  const directory = await mkdtemp(join(values.dir, "hyperscale-bench-wal-"));
  try {
    let finish: () => void = () => {};
    const written = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const started = performance.now();
    const onDurable = (count: number): void => {
      if (count === ENTRIES) finish();
    };
    const log = await Wal.open({ directory, identity, onDurable });
    let sent = 0;
    const pump = (): void => {
      for (let i = 0; i < 2_000 && sent < ENTRIES && !log.congested; i++, sent++) {
        log.post(RECORD_TYPES.VSR_ENTRY, payload);
      }
      if (sent < ENTRIES) setImmediate(pump);
    };
    pump();
    await written;
    const writtenMs = performance.now() - started;
    await log.close();
    const opening = performance.now();
    let seen = 0;
    const again = await Wal.open({ directory, identity, onEntry: () => seen++ });
    const recoveredMs = performance.now() - opening;
    if (seen !== ENTRIES) throw new Error(`${seen} of ${ENTRIES} entries came back`);
    await again.close();
    return { writtenMs, recoveredMs };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

function hardware(): string {
  const [cpu] = cpus();
  const gib = (totalmem() / 2 ** 30).toFixed(0);
  const kind = execFileSync("df", ["--output=fstype", values.dir], { encoding: "utf8" });
  const system = kind.trim().split("\n").at(-1) ?? "?";
  const load = loadavg()[0]?.toFixed(1);
  return (
    `${cpus().length} x ${cpu?.model}, ${gib} GiB, ${system}, Node ${process.version}, ` +
    `${process.platform}; load average at the end ${load}`
  );
}

function row(name: string, { perSecond, perSync, p50, p99, syncMs, bound }: BoundedRate): string {
  const ratio = (perSecond / bound).toFixed(2);
  const cells = [
    name,
    `${whole(perSecond)}/s`,
    whole(perSync),
    `${(syncMs * 1_000).toFixed(0)} µs`,
    `${whole(bound)}/s`,
    ratio,
    `${p50.toFixed(2)} / ${p99.toFixed(2)} ms`,
  ];
  return `| ${cells.join(" | ")} |`;
}

say("group commit …");
const hundred = await groupCommit({ unsyncedEntriesMax: 100 }, PRODUCERS);
const grouped = await groupCommit({}, PRODUCERS);
const wide = await groupCommit({}, 5 * PRODUCERS);
say("5,000 per second …");
const paced = await withLog({}, async (log) => {
  await openLoop(log, OFFERED_PER_SECOND, 1);
  return openLoop(log, OFFERED_PER_SECOND, Math.max(5, SECONDS));
});
say("recovery …");
const recovered = await recovery();

if (values.json) {
  const figures = { hardware: hardware(), hundred, grouped, wide, paced, recovered };
  process.stdout.write(`${JSON.stringify(figures, null, 2)}\n`);
} else {
  process.stdout.write(`${hardware()}

| ${ENTRY_BYTES}-byte entries | durable appends | per sync | one fdatasync | bound | ratio | p50 / p99 |
|---|---|---|---|---|---|---|
${row(`one batch of 100 per sync, ${whole(PRODUCERS)} producers`, hundred)}
${row(`default, ${whole(PRODUCERS)} producers`, grouped)}
${row(`default, ${whole(5 * PRODUCERS)} producers`, wide)}

| | |
|---|---|
| append at ${whole(OFFERED_PER_SECOND)}/s offered, p50 / p99 | ${paced.p50.toFixed(2)} / ${paced.p99.toFixed(2)} ms |
| ${whole(ENTRIES)} entries posted and durable | ${(recovered.writtenMs / 1_000).toFixed(2)} s |
| recovery of ${whole(ENTRIES)} entries | ${(recovered.recoveredMs / 1_000).toFixed(2)} s |
`);
}
