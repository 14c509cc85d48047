/**
 * Shared parts of the simulators' commands: many seeds over several processes, one seed in full, shrinking, the search
 * for planted mutants, and the exit codes.
 *
 * Exit: 0 clean, 127 a machine broke its own assertion, 128 liveness did not return, 129 an invariant broke.
 */

import { execFileSync } from "node:child_process";
import { availableParallelism } from "node:os";
import { Command, InvalidArgumentError } from "commander";
import type { RunResult } from "../membership/run.ts";
import { type PoolResult, runPool } from "./pool.ts";
import { shrink } from "./shrink.ts";

/** One seed in this many runs twice, and must give the same trace hash. */
const TWICE_EVERY = 20;
const MUTANT_SEEDS_MAX = 2_000;
const EXIT_CRASH = 127;
const EXIT_LIVENESS = 128;
const EXIT_SAFETY = 129;

interface BaseRun {
  readonly seed: number;
  readonly minutes: number;
  readonly mutant: string | null;
  readonly faults: readonly number[] | null;
}

interface SimFlags {
  readonly seeds: number;
  readonly from: number;
  readonly minutes: number;
  readonly jobs: number;
  readonly seed?: number;
  readonly mutant?: string;
  readonly mutants?: boolean;
  readonly shrink?: boolean;
  readonly faults?: string;
}

interface Simulator<Run extends BaseRun> {
  /** Name of the `npm run` script. */
  readonly script: string;
  readonly worker: URL;
  readonly mutants: readonly string[];
  /** Invariants that hold eventually, not always. */
  readonly liveness: ReadonlySet<string>;
  readonly run: (options: Run) => RunResult;
  /** Adds the simulator's own flags to a run, and to the line that replays it. */
  readonly complete: (base: BaseRun) => Run;
  readonly replayFlags: readonly string[];
}

export function count(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 0) {
    throw new InvalidArgumentError("expected a whole number of zero or more");
  }
  return value;
}

function minutes(text: string): number {
  const value = Number(text);
  if (!(value > 0 && value <= 1_440)) throw new InvalidArgumentError("expected 0 to 1440 minutes");
  return value;
}

export function simCommand(name: string, description: string, mutant: string): Command {
  return new Command(name)
    .description(description)
    .option("--seeds <n>", "how many seeds to run", count, 20)
    .option("--from <seed>", "the first seed", count, 1)
    .option("--minutes <m>", "simulated minutes per seed", minutes, 10)
    .option("--jobs <n>", "processes to use", count, Math.min(2, availableParallelism()))
    .option("--seed <n>", "run this seed only and show its last events", count)
    .option("--faults <list>", "with --seed: keep only these faults of the plan, e.g. 3,7,12")
    .option("--shrink", "with --seed: find the fewest faults that still break the same invariant")
    .option("--mutant <rule>", `break one rule on purpose, e.g. ${mutant}`)
    .option("--mutants", "check that every planted mutant is found within 2,000 seeds");
}

export async function simulate<Run extends BaseRun>(
  program: Command,
  sim: Simulator<Run>,
): Promise<void> {
  const flags = program.opts<SimFlags>();
  if (flags.mutant !== undefined && !sim.mutants.includes(flags.mutant)) {
    program.error(`unknown mutant "${flags.mutant}"; one of:\n  ${sim.mutants.join("\n  ")}`);
  }
  if (flags.mutants === true) process.exitCode = await findMutants(sim, flags);
  else if (flags.seed !== undefined) process.exitCode = runOne(sim, flags, flags.seed);
  else process.exitCode = await runMany(sim, flags);
}

function runOptions<Run extends BaseRun>(sim: Simulator<Run>, flags: SimFlags, seed: number): Run {
  const faults = flags.faults?.split(",").map(count) ?? null;
  return sim.complete({ seed, minutes: flags.minutes, mutant: flags.mutant ?? null, faults });
}

async function runMany<Run extends BaseRun>(
  sim: Simulator<Run>,
  options: SimFlags,
): Promise<number> {
  const started = performance.now();
  const queue: number[] = [];
  for (let i = 0; i < options.seeds; i++) {
    queue.push(options.from + i);
    if (i % TWICE_EVERY === 0) queue.push(options.from + i);
  }
  const hashes = new Map<number, string>();
  const marks = new Map<string, number>();
  const failures: RunResult[] = [];
  let [finished, simulatedMs, cpuMs, repeats] = [0, 0, 0, 0];
  const onDone = ({ result, cpuMs: spent }: PoolResult<Run>): void => {
    finished++;
    simulatedMs += result.simulatedMs;
    cpuMs += spent;
    for (const mark of result.marks) marks.set(mark, (marks.get(mark) ?? 0) + 1);
    const known = hashes.get(result.seed);
    if (known !== undefined) {
      repeats++;
      if (known !== result.hash) {
        const text = `two runs, two hashes: ${known} and ${result.hash}`;
        const violation = { id: "HASH", text, at: result.simulatedMs };
        failures.push({ ...result, violation });
        printFailure(sim, { ...result, violation }, options);
      }
    } else {
      hashes.set(result.seed, result.hash);
      if (result.violation !== null) {
        failures.push(result);
        printFailure(sim, result, options);
      }
    }
    if (process.stderr.isTTY || finished % 50 === 0 || finished === queue.length) {
      const end = process.stderr.isTTY ? "\r" : "\n";
      process.stderr.write(`${finished}/${queue.length} runs, ${failures.length} failed${end}`);
    }
  };
  let at = 0;
  const total = [...queue];
  const next = (): Run | null => {
    const seed = total[at++];
    return seed === undefined ? null : runOptions(sim, options, seed);
  };
  await runPool({ worker: sim.worker, jobs: options.jobs, next, done: onDone });
  const wallS = (performance.now() - started) / 1_000;
  const perCpu = simulatedMs / Math.max(1, cpuMs);
  const lines = [
    `${options.seeds} seeds x ${options.minutes} simulated minutes, ${failures.length} violations`,
    `${Math.round(simulatedMs / 1_000)} simulated s in ${wallS.toFixed(1)} s on ${options.jobs} processes; ` +
      `${Math.round(perCpu)} simulated s per second of one core`,
    `${repeats} seeds run twice: ${repeats} same trace hashes`,
    `seen: ${[...marks].map(([mark, seeds]) => `${mark} ${seeds}`).join(", ")}`,
  ];
  process.stdout.write(`${lines.join("\n")}\n`);
  return exitCode(sim, failures[0]?.violation?.id ?? null);
}

function runOne<Run extends BaseRun>(sim: Simulator<Run>, options: SimFlags, seed: number): number {
  let wanted = runOptions(sim, options, seed);
  let result = sim.run(wanted);
  if (options.shrink === true && result.violation !== null) {
    wanted = shrink(sim.run, wanted, result, (kept) => {
      process.stderr.write(`${kept} faults still break it\n`);
    });
    result = sim.run(wanted);
  }
  if (result.violation !== null) {
    for (const { at, text } of result.lastNotes) process.stdout.write(`${at.toFixed(1)} ${text}\n`);
    printFailure(sim, result, { ...options, ...faultsOption(wanted.faults) });
  } else {
    const seconds = Math.round(result.simulatedMs / 1_000);
    process.stdout.write(
      `seed ${seed}: clean, hash ${result.hash}, ${result.events} events in ${seconds} simulated s\n`,
    );
  }
  return exitCode(sim, result.violation?.id ?? null);
}

function faultsOption(faults: readonly number[] | null): { readonly faults?: string } {
  return faults === null ? {} : { faults: faults.join(",") };
}

/** Prints one line that replays it. */
function printFailure<Run extends BaseRun>(
  sim: Simulator<Run>,
  result: RunResult,
  options: SimFlags,
): void {
  const { violation, seed } = result;
  if (violation === null) return;
  const parts = [`--seed ${seed}`, `--minutes ${options.minutes}`, ...sim.replayFlags];
  if (options.mutant !== undefined) parts.push(`--mutant ${options.mutant}`);
  if (options.faults !== undefined) parts.push(`--faults ${options.faults}`);
  process.stdout.write(
    `${violation.id} at ${violation.at.toFixed(1)} ms: ${violation.text}\n` +
      `  replay: npm run ${sim.script} -- ${parts.join(" ")}   # ${commit()}, hash ${result.hash}\n`,
  );
}

function commit(): string {
  try {
    return execFileSync("git", ["rev-parse", "--short", "HEAD"], { encoding: "utf8" }).trim();
  } catch {
    return "unknown commit";
  }
}

async function findMutants<Run extends BaseRun>(
  sim: Simulator<Run>,
  options: SimFlags,
): Promise<number> {
  const names = options.mutant === undefined ? [...sim.mutants] : [options.mutant];
  const open = new Map(names.map((mutant) => [mutant, options.from]));
  const found = new Map<string, RunResult>();
  const spentMs = new Map<string, number>();
  let turn = 0;
  // All mutants advance together, so that the stubborn ones do not hold up the rest.
  const next = (): Run | null => {
    for (let i = 0; i < names.length; i++) {
      const mutant = names[turn++ % names.length] as string;
      const seed = open.get(mutant) ?? 0;
      if (found.has(mutant) || seed >= options.from + MUTANT_SEEDS_MAX) continue;
      open.set(mutant, seed + 1);
      return runOptions(sim, { ...options, mutant }, seed);
    }
    return null;
  };
  const done = ({ cpuMs, result, options: run }: PoolResult<Run>): void => {
    if (run.mutant !== null && !found.has(run.mutant))
      spentMs.set(run.mutant, (spentMs.get(run.mutant) ?? 0) + cpuMs);
    if (result.violation === null || run.mutant === null || found.has(run.mutant)) return;
    // A seed that fails without the mutant too has found nothing.
    if (sim.run({ ...run, mutant: null }).violation !== null) return;
    found.set(run.mutant, result);
    const { id, text } = result.violation;
    const seconds = ((spentMs.get(run.mutant) ?? 0) / 1_000).toFixed(1);
    process.stdout.write(
      `found ${run.mutant} by seed ${result.seed} after ${seconds} s: ${id} ${text}\n`,
    );
  };
  await runPool({ worker: sim.worker, jobs: options.jobs, next, done });
  const missed = names.filter((mutant) => !found.has(mutant));
  process.stdout.write(mutantTable(names, found, spentMs, options.from));
  process.stdout.write(`${found.size} of ${names.length} mutants found\n`);
  return missed.length === 0 ? 0 : 1;
}

/** Table of the invariant that found each planted defect, after how many seeds and CPU seconds. */
function mutantTable(
  names: readonly string[],
  found: ReadonlyMap<string, RunResult>,
  spentMs: ReadonlyMap<string, number>,
  from: number,
): string {
  const rows = names.map((mutant) => {
    const result = found.get(mutant);
    const seeds = result === undefined ? "NOT FOUND" : String(result.seed - from + 1);
    const seconds = ((spentMs.get(mutant) ?? 0) / 1_000).toFixed(1);
    return `| ${mutant} | ${result?.violation?.id ?? ""} | ${seeds} | ${seconds} |\n`;
  });
  return `| mutant | found by | seeds | seconds |\n|---|---|---|---|\n${rows.join("")}`;
}

function exitCode<Run extends BaseRun>(sim: Simulator<Run>, violation: string | null): number {
  if (violation === null) return 0;
  if (violation === "DEFECT") return EXIT_CRASH;
  return sim.liveness.has(violation) ? EXIT_LIVENESS : EXIT_SAFETY;
}
