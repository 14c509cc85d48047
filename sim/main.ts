/**
 * `npm run sim`: many seeds over several processes, or one seed in full.
 *
 *   npm run sim -- --seeds 300 --minutes 10        the check before every merge
 *   npm run sim -- --seed 17 --minutes 10          replay one seed, with its last events
 *   npm run sim -- --seed 17 --shrink              the fewest faults that still break it
 *   npm run sim -- --mutants                       is every planted defect found?
 *
 * Exit: 0 clean, 127 a machine broke its own assertion, 128 liveness did not return, 129 an invariant broke.
 */

import { execFileSync } from "node:child_process";
import { availableParallelism } from "node:os";
import { Command, InvalidArgumentError } from "commander";
import { MUTANTS } from "./mutants.ts";
import type { PoolResult } from "./pool.ts";
import { runPool } from "./pool.ts";
import type { RunOptions, RunResult } from "./run.ts";
import { runSeed } from "./run.ts";
import { shrink } from "./shrink.ts";

/** Invariants that say "in the end", not "always". */
const LIVENESS = new Set(["M5", "M7", "E9"]);
/** One seed in this many runs twice, and must give the same trace hash. */
const TWICE_EVERY = 20;
const MUTANT_SEEDS_MAX = 2_000;
const EXIT_CRASH = 127;
const EXIT_LIVENESS = 128;
const EXIT_SAFETY = 129;

interface Options {
  readonly seeds: number;
  readonly from: number;
  readonly minutes: number;
  readonly jobs: number;
  readonly seed?: number;
  readonly mutant?: string;
  readonly mutants?: boolean;
  readonly shrink?: boolean;
  readonly faults?: string;
  readonly members?: number;
  readonly electing?: number;
}

function count(text: string): number {
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

const program = new Command("sim")
  .description("Runs the cluster protocols in simulated worlds with faults, one world per seed.")
  .option("--seeds <n>", "how many seeds to run", count, 20)
  .option("--from <seed>", "the first seed", count, 1)
  .option("--minutes <m>", "simulated minutes per seed", minutes, 10)
  .option("--jobs <n>", "processes to use", count, Math.min(2, availableParallelism()))
  .option("--seed <n>", "run this seed only and show its last events", count)
  .option("--members <n>", "members besides the electing ones (default: drawn by the seed)", count)
  .option("--electing <n>", "electing members, 1, 3 or 5 (default: drawn by the seed)", count)
  .option("--faults <list>", "with --seed: keep only these faults of the plan, e.g. 3,7,12")
  .option("--shrink", "with --seed: find the fewest faults that still break the same invariant")
  .option("--mutant <rule>", "break one rule on purpose, e.g. swim.equalAliveLoses")
  .option("--mutants", "check that every planted mutant is found within 2,000 seeds");

await main(program.parse().opts<Options>());

async function main(options: Options): Promise<void> {
  if (options.mutant !== undefined && !MUTANTS.includes(options.mutant)) {
    program.error(`unknown mutant "${options.mutant}"; one of:\n  ${MUTANTS.join("\n  ")}`);
  }
  if ((options.members === undefined) !== (options.electing === undefined)) {
    program.error("--members and --electing go together");
  }
  if (options.mutants === true) process.exitCode = await findMutants(options);
  else if (options.seed !== undefined) process.exitCode = runOne(options, options.seed);
  else process.exitCode = await runMany(options);
}

function runOptions(options: Options, seed: number): RunOptions {
  const { members, electing } = options;
  return {
    seed,
    minutes: options.minutes,
    mutant: options.mutant ?? null,
    faults: options.faults?.split(",").map(count) ?? null,
    size: members === undefined || electing === undefined ? null : { members, electing },
  };
}

async function runMany(options: Options): Promise<number> {
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
  const onDone = ({ result, cpuMs: spent }: PoolResult): void => {
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
        printFailure({ ...result, violation }, options);
      }
    } else {
      hashes.set(result.seed, result.hash);
      if (result.violation !== null) {
        failures.push(result);
        printFailure(result, options);
      }
    }
    if (process.stderr.isTTY || finished % 50 === 0 || finished === queue.length) {
      const end = process.stderr.isTTY ? "\r" : "\n";
      process.stderr.write(`${finished}/${queue.length} runs, ${failures.length} failed${end}`);
    }
  };
  let at = 0;
  const total = [...queue];
  await runPool(
    options.jobs,
    () => {
      const seed = total[at++];
      return seed === undefined ? null : runOptions(options, seed);
    },
    onDone,
  );
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
  return exitCode(failures[0]?.violation?.id ?? null);
}

function runOne(options: Options, seed: number): number {
  let wanted = runOptions(options, seed);
  let result = runSeed(wanted);
  if (options.shrink === true && result.violation !== null) {
    wanted = shrink(wanted, result.violation.id, (kept) => {
      process.stderr.write(`${kept} faults still break it\n`);
    });
    result = runSeed(wanted);
  }
  if (result.violation !== null) {
    for (const { at, text } of result.lastNotes) process.stdout.write(`${at.toFixed(1)} ${text}\n`);
    printFailure(result, { ...options, ...faultsOption(wanted.faults) });
  } else {
    const seconds = Math.round(result.simulatedMs / 1_000);
    process.stdout.write(
      `seed ${seed}: clean, hash ${result.hash}, ${result.events} events in ${seconds} simulated s\n`,
    );
  }
  return exitCode(result.violation?.id ?? null);
}

function faultsOption(faults: readonly number[] | null): { readonly faults?: string } {
  return faults === null ? {} : { faults: faults.join(",") };
}

/** One line that replays it. */
function printFailure(result: RunResult, options: Options): void {
  const { violation, seed } = result;
  if (violation === null) return;
  const parts = [`--seed ${seed}`, `--minutes ${options.minutes}`];
  if (options.members !== undefined) parts.push(`--members ${options.members}`);
  if (options.electing !== undefined) parts.push(`--electing ${options.electing}`);
  if (options.mutant !== undefined) parts.push(`--mutant ${options.mutant}`);
  if (options.faults !== undefined) parts.push(`--faults ${options.faults}`);
  process.stdout.write(
    `${violation.id} at ${violation.at.toFixed(1)} ms: ${violation.text}\n` +
      `  replay: npm run sim -- ${parts.join(" ")}   # ${commit()}, hash ${result.hash}\n`,
  );
}

function commit(): string {
  try {
    return execFileSync("git", ["rev-parse", "--short", "HEAD"], { encoding: "utf8" }).trim();
  } catch {
    return "unknown commit";
  }
}

async function findMutants(options: Options): Promise<number> {
  const names = options.mutant === undefined ? [...MUTANTS] : [options.mutant];
  const open = new Map(names.map((mutant) => [mutant, options.from]));
  const found = new Map<string, RunResult>();
  let turn = 0;
  // All mutants advance together, so that the stubborn ones do not hold up the rest.
  const next = (): RunOptions | null => {
    for (let i = 0; i < names.length; i++) {
      const mutant = names[turn++ % names.length] as string;
      const seed = open.get(mutant) ?? 0;
      if (found.has(mutant) || seed >= options.from + MUTANT_SEEDS_MAX) continue;
      open.set(mutant, seed + 1);
      return { ...runOptions(options, seed), mutant };
    }
    return null;
  };
  await runPool(options.jobs, next, ({ result, options: run }) => {
    if (result.violation === null || run.mutant === null || found.has(run.mutant)) return;
    // A seed that fails without the mutant too has found nothing.
    if (runSeed({ ...run, mutant: null }).violation !== null) return;
    found.set(run.mutant, result);
    const { id, text } = result.violation;
    process.stdout.write(`found ${run.mutant} by seed ${result.seed}: ${id} ${text}\n`);
  });
  const missed = names.filter((mutant) => !found.has(mutant));
  for (const mutant of missed) process.stdout.write(`NOT FOUND: ${mutant}\n`);
  process.stdout.write(`${found.size} of ${names.length} mutants found\n`);
  return missed.length === 0 ? 0 : 1;
}

function exitCode(violation: string | null): number {
  if (violation === null) return 0;
  if (violation === "DEFECT") return EXIT_CRASH;
  return LIVENESS.has(violation) ? EXIT_LIVENESS : EXIT_SAFETY;
}
