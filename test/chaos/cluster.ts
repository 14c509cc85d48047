/**
 * `npm run chaos:cluster`: gates, managers and workers as processes, and random faults while jobs run; exits non-zero
 * on a violation. Every fault is equally frequent, in an order and at times derived from the seed.
 *
 *     npm run chaos:cluster -- --rounds 30 --seed 42 --duration 60 --away 20
 *     npm run chaos:cluster -- --only "kill worker" --rounds 3
 *     npm run chaos:pressure                              overloaded nodes, 60 s each
 *
 * As root it runs in its own namespaces, so that a network can be cut and a disk filled.
 */

import { parseArgs } from "node:util";
import type { NodePlan } from "../../src/cli/commands/cluster-plan.ts";
import { Random } from "../../src/core/base/random.ts";
import { FAULTS, type Fault } from "./cluster/faults.ts";
import { Nodes } from "./cluster/nodes.ts";
import { PRESSURE_FAULTS } from "./cluster/pressure.ts";
import { replayLine } from "./cluster/replay.ts";
import { type Outcome, playRound, type Stage } from "./cluster/round.ts";
import { isApart, runApart, Sites } from "./cluster/sites.ts";
import { SmallDisks } from "./cluster/small-disks.ts";
import { CountingTarget } from "./cluster/target.ts";

const DEFAULTS = {
  ...{ gates: "3", datacenters: "2", managers: "3", workers: "2" },
  ...{ duration: "25", away: "8", profile: "dc", minutes: "600" },
};
const { values } = parseArgs({
  options: {
    rounds: { type: "string" },
    pressure: { type: "boolean", default: false },
    seed: { type: "string" },
    only: { type: "string" },
    gates: { type: "string", default: DEFAULTS.gates },
    datacenters: { type: "string", default: DEFAULTS.datacenters },
    managers: { type: "string", default: DEFAULTS.managers },
    workers: { type: "string", default: DEFAULTS.workers },
    duration: { type: "string", default: DEFAULTS.duration },
    away: { type: "string", default: DEFAULTS.away },
    profile: { type: "string", default: DEFAULTS.profile },
    minutes: { type: "string", default: DEFAULTS.minutes },
    logs: { type: "string" },
    help: { type: "boolean", short: "h", default: false },
  },
});
const faults = values.pressure ? PRESSURE_FAULTS : FAULTS;
const numbers = [
  ...[
    values.rounds ?? faults.length,
    values.gates,
    values.datacenters,
    values.managers,
    values.workers,
  ],
  ...[values.duration, values.away, values.minutes],
].map(Number);
const [rounds = 0, gates = 0, datacenterCount = 0, managers = 0, workers = 0] = numbers;
const [durationSeconds = 0, awaySeconds = 0, minutes = 0] = numbers.slice(5);
const seed = values.seed === undefined ? Date.now() % 1_000_000 : Number(values.seed);
const wanted = faults.filter(({ name }) => values.only === undefined || name === values.only);
const isWrong = numbers.some((one) => !(one > 0)) || !Number.isInteger(seed) || wanted.length === 0;
if (values.help || isWrong) {
  const names = faults.map(({ name }) => `"${name}"`).join(", ");
  (values.help ? process.stdout : process.stderr).write(
    `usage: npm run chaos:${values.pressure ? "pressure" : "cluster"} -- [options]
  --rounds N       faults one after the other, each as often as any other (${faults.length})
  --seed N         of their order and moments (the clock)
  --only NAME      this fault in every round
  --duration S     seconds of load of a round's job (25)
  --away S         seconds that something is away (8)
  --minutes N      begin no further round after them (600)
  --logs DIR       what every node logs
  --gates N --datacenters N --managers N --workers N --profile P   of the cluster (3, 2, 3, 2, dc)
faults: ${names}
`,
  );
  process.exit(values.help ? 0 : 2);
}
if (!isApart()) {
  const code = runApart();
  if (code !== null) process.exit(code);
}

const started = performance.now();
const say = (text: string): void => {
  const at = ((performance.now() - started) / 1_000).toFixed(0).padStart(5);
  process.stdout.write(`${at} s  ${text}\n`);
};

const datacenters = Array.from({ length: datacenterCount }, (_, at) => `dc${at + 1}`);
const sites = Sites.create(datacenters);
const disks = new SmallDisks();
const possible = wanted.filter(({ hindrance, name }) => {
  const problem = hindrance?.(sites) ?? null;
  if (problem !== null) say(`left out: ${name} (${problem})`);
  return problem === null;
});
const target = await CountingTarget.start(sites.home.host);
const shape = { gates, datacenters, managers, workers, cores: 1, port: 7_700 };
const prepared = (plan: NodePlan, dataDir: string): void => {
  const isSmall = plan.role === "manager" && plan.datacenter === datacenters[0];
  if (isSmall && SmallDisks.isPossible) disks.mount(dataDir);
};
const options = { ...shape, profile: values.profile };
const nodes = await Nodes.start(options, sites, prepared, values.logs ?? null);
say(`${nodes.names().length} nodes are up; seed ${seed}`);
const stage: Stage = {
  ...{ nodes, sites, disks, target, datacenters },
  ...{ durationMs: durationSeconds * 1_000, awayMs: awaySeconds * 1_000 },
};
const outcomes: Outcome[] = [];
let isWhole = false;
try {
  const random = new Random(seed);
  let deck: Fault[] = [];
  const until = performance.now() + minutes * 60_000;
  for (let round = 1; round <= rounds && performance.now() < until; round++) {
    if (deck.length === 0) deck = random.shuffle([...possible]);
    const fault = deck.pop();
    if (fault === undefined) break;
    const outcome = await playRound(stage, fault, random.fork(`round ${round}`));
    outcomes.push(outcome);
    say(`${round}. ${outcome.fault}: ${outcome.struck}; ${outcome.seen}`);
    for (const problem of outcome.problems) say(`   VIOLATION ${problem}`);
  }
  isWhole = true;
} catch (error) {
  // Results so far are printed all the same.
  say(`a round could not be played: ${error instanceof Error ? error.message : String(error)}`);
} finally {
  await nodes.end();
  disks.unmount();
  nodes.remove();
  target.close();
}

const rows = [
  ["fault", "expected", "seen", "counted", "made", "at most not counted", "judgement"],
  ...outcomes.map(({ counted, expected, fault, made, notCounted, problems, seen }) => [
    ...[fault, expected, seen, String(counted), String(made), String(notCounted ?? "unknown")],
    problems.length === 0 ? "holds" : "VIOLATED",
  ]),
];
const widths = (rows[0] ?? []).map((_, at) =>
  Math.max(...rows.map((row) => (row[at] ?? "").length)),
);
process.stdout.write("\n");
for (const row of rows)
  process.stdout.write(`${row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join("  ")}\n`);
const violated = outcomes.filter(({ problems }) => problems.length > 0).length;
process.stdout.write(
  `\n${outcomes.length} rounds, ${violated} violated\n` +
    `replay  ${replayLine(values, DEFAULTS, { rounds, seed })}\n`,
);
process.exit(isWhole && violated === 0 ? 0 : 1);
