/**
 * `npm run combinations`: generated combinations of features, run against a server that keeps its own
 * log, every figure compared with a model computed from that log. Each number gives a linear case,
 * written as layers of steps and as a flow, a journey that only a flow can write, and a run at its edges: hanging
 * targets, small feeds, many names, a blocked loop, a lost core, a search.
 *
 *     npm run combinations -- --count 200 --seed 7
 *     npm run combinations -- --count 2000 --jobs 4            in four processes
 *     npm run combinations -- --seed 7 --from 12 --count 1     one of them again
 *     npm run combinations -- --count 2000 --dimensions        how often each feature is drawn
 *     npm run combinations -- --mutants                        planted defects must be found
 *     npm run combinations -- --mutants --named pause          one of them
 */

import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { CASES, type Case, countDimensions, differencesOf } from "./cases.ts";
import { findMutants } from "./mutants.ts";

const { values } = parseArgs({
  options: {
    count: { type: "string", default: "100" },
    from: { type: "string", default: "0" },
    seed: { type: "string", default: String(Date.now()) },
    jobs: { type: "string", default: "1" },
    only: { type: "string" },
    first: { type: "boolean", default: false },
    dimensions: { type: "boolean", default: false },
    mutants: { type: "boolean", default: false },
    named: { type: "string", default: "" },
  },
});

if (values.mutants) process.exitCode = (await findMutants(values.named)) ? 0 : 1;
else if (values.dimensions) printDimensions();
else process.exitCode = (await compareAll()) === 0 ? 0 : 1;

async function compareAll(): Promise<number> {
  const [from, count, jobs] = [Number(values.from), Number(values.count), Number(values.jobs)];
  const beganAt = performance.now();
  const slices = Array.from({ length: jobs }, (_, at) => ({
    from: from + Math.floor((at * count) / jobs),
    until: from + Math.floor(((at + 1) * count) / jobs),
  }));
  const results = await Promise.all(
    jobs === 1
      ? [compareSlice(from, from + count)]
      : slices.map((slice) => compareApart(slice.from, slice.until)),
  );
  const different = results.reduce((sum, one) => sum + one, 0);
  const seconds = Math.round((performance.now() - beganAt) / 1_000);
  process.stdout.write(
    `${count} combinations as ${chosenCases().join(", ")}, seed ${values.seed}: ${different} differ ` +
      `(${seconds} s)\n`,
  );
  return different;
}

/** Runs a slice in its own process; one that exits without an answer aborts the command. */
async function compareApart(from: number, until: number): Promise<number> {
  const slice = ["--jobs", "1", "--from", String(from), "--count", String(until - from)];
  const kept = [
    "--seed",
    values.seed,
    ...(values.only === undefined ? [] : ["--only", values.only]),
  ];
  const first = values.first ? ["--first"] : [];
  const child = fork(fileURLToPath(import.meta.url), [...slice, ...kept, ...first]);
  const answered = once(child, "message");
  const [code] = await once(child, "exit");
  if (code !== 0 && code !== 1) throw new Error(`combinations from ${from}: exit code ${code}`);
  const [different] = await answered;
  return Number(different);
}

function chosenCases(): Case[] {
  return CASES.filter((one) => values.only === undefined || values.only === one);
}

function printDimensions(): void {
  for (const [name, count] of countDimensions(values.seed, Number(values.count)))
    process.stdout.write(`${String(count).padStart(6)}  ${name}\n`);
}

async function compareSlice(from: number, until: number): Promise<number> {
  let different = 0;
  for (let at = from; at < until; at++) {
    for (const one of chosenCases()) if (await differs(one, `${values.seed}/${at}`)) different++;
    if (different > 0 && values.first) break;
    if ((at + 1 - from) % 25 === 0)
      process.stdout.write(`${at + 1 - from} combinations, ${different} differ\n`);
  }
  process.send?.(different);
  return different;
}

async function differs(one: Case, seed: string): Promise<boolean> {
  const { chosen, found } = await differencesOf(one, seed);
  if (found.length === 0) return false;
  const lines = found.map((text) => `  ${text}\n`).join("");
  process.stdout.write(`\n${one} ${JSON.stringify(chosen)}\n${lines}`);
  return true;
}
