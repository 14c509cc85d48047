/**
 * Kills a writing process at random times and compares the disk with its reports: every entry it called durable is
 * there byte for byte, and the next process continues from it.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { Random } from "../../../src/core/base/random.ts";
import { PATIENCE_MS } from "../../patience.ts";
import { checkEntries } from "./entries.ts";

const CHILD = fileURLToPath(new URL("./child.ts", import.meta.url));
/** A new log after this many kills, so that checking stays cheap. */
const KILLS_PER_LOG = 25;

interface KillReport {
  readonly kills: number;
  /** Entries called durable, over all processes. */
  readonly acknowledged: number;
  /** Kills that left a torn tail. */
  readonly torn: number;
  /** Kills before the process had opened its log. */
  readonly early: number;
}

/** The child as one file of plain JavaScript: a thousand starts should not each translate it again. */
export async function buildChild(folder: string): Promise<string> {
  const outfile = join(folder, "child.mjs");
  await build({ entryPoints: [CHILD], bundle: true, platform: "node", format: "esm", outfile });
  return outfile;
}

/** Throws at the first kill after which something acknowledged is missing. */
export async function killRepeatedly(
  kills: number,
  seed: number,
  onKill: (done: number) => void = () => {},
): Promise<KillReport> {
  const random = new Random(seed);
  const report = { kills: 0, acknowledged: 0, torn: 0, early: 0 };
  const folder = await mkdtemp(join(tmpdir(), "hyperscale-wal-child-"));
  const script = await buildChild(folder);
  while (report.kills < kills) {
    const directory = await mkdtemp(join(tmpdir(), "hyperscale-wal-"));
    let before = 0;
    for (let i = 0; i < KILLS_PER_LOG && report.kills < kills; i++) {
      const life = await liveAndDie(script, directory, random);
      const { entries, torn } = await checkEntries(directory);
      const promised = Math.max(before, life.durable);
      if (entries < promised) {
        throw new Error(
          `seed ${seed}, kill ${report.kills}: ${promised} entries were durable, ${entries} are there (${directory})`,
        );
      }
      if (life.ready !== null && life.ready < before) {
        throw new Error(
          `seed ${seed}: a process recovered ${life.ready} of ${before} (${directory})`,
        );
      }
      report.kills++;
      report.acknowledged += Math.max(0, life.durable - before);
      if (torn) report.torn++;
      if (life.ready === null) report.early++;
      before = promised;
      onKill(report.kills);
    }
    await rm(directory, { recursive: true, force: true });
  }
  await rm(folder, { recursive: true, force: true });
  return report;
}

interface Life {
  /** Number of recovered entries; null if it was killed before. */
  readonly ready: number | null;
  readonly durable: number;
}

async function liveAndDie(script: string, directory: string, random: Random): Promise<Life> {
  const child = spawn(process.execPath, [script, directory], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const said = listen(child);
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const early = random.chance(0.05);
  const timeout = setTimeout(() => child.kill("SIGKILL"), PATIENCE_MS);
  if (early) await sleep(random.float() * 150);
  else {
    await Promise.race([said.ready, ended]);
    await sleep(random.float() * random.pick([2, 20, 120]));
  }
  child.kill("SIGKILL");
  await ended;
  clearTimeout(timeout);
  return said.life();
}

function listen(child: ChildProcess): { readonly ready: Promise<void>; readonly life: () => Life } {
  let text = "";
  let tell: () => void = () => {};
  const ready = new Promise<void>((resolve) => {
    tell = resolve;
  });
  child.stdout?.on("data", (data) => {
    text += String(data);
    if (text.includes("ready")) tell();
  });
  // A line that was cut by the kill had not been said.
  const last = (word: string): number | null => {
    const lines = text.slice(0, text.lastIndexOf("\n") + 1).split("\n");
    const line = lines.findLast((candidate) => candidate.startsWith(`${word} `));
    return line === undefined ? null : Number(line.slice(word.length + 1));
  };
  return { ready, life: () => ({ ready: last("ready"), durable: last("durable") ?? 0 }) };
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
