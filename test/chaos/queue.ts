/** `npm run chaos:queue`: the full chaos run; see chaos.ts. */

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { defaultSettings } from "../../src/queue/index.ts";
import { chaos } from "../processes/queue/chaos.ts";
import type { ExplainedAttempt } from "../processes/queue/chaos-attempts.ts";
import type { Fault } from "../processes/queue/chaos-faults.ts";
import { TestPostgres } from "../processes/queue/server.ts";

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "1200" },
    tasks: { type: "string", default: "20000" },
    workers: { type: "string", default: "4" },
    leaders: { type: "string", default: "2" },
    restarts: { type: "string", default: "6" },
    every: { type: "string", default: "6" },
    seed: { type: "string", default: String(Date.now() % 100_000) },
    /** Lease in seconds; default of a node. */
    lease: { type: "string", default: String(defaultSettings.taskLeaseMs / 1_000) },
    "leader-lease": { type: "string", default: String(defaultSettings.leaderLeaseMs / 1_000) },
    /** A folder for every fault and every lost attempt, one line each, and for what the nodes warn of. */
    out: { type: "string" },
  },
});
if (values.out !== undefined) mkdirSync(values.out, { recursive: true });
const server = await TestPostgres.start();
let code = 1;
try {
  console.log(`chaos: seed ${values.seed}`);
  const result = await chaos({
    server,
    seconds: Number(values.seconds),
    tasks: Number(values.tasks),
    workers: Number(values.workers),
    leaders: Number(values.leaders),
    restarts: Number(values.restarts),
    everyMs: Number(values.every) * 1_000,
    seed: Number(values.seed),
    leases: {
      taskLeaseMs: Number(values.lease) * 1_000,
      leaderLeaseMs: Number(values["leader-lease"]) * 1_000,
    },
    logsDirectory: values.out,
    say: (text) => console.log(text),
  });
  const { faults, lost, ...rest } = result;
  console.log(rest);
  console.log("faults:");
  console.table(counted(faults.map(({ kind, led }) => (led ? `${kind}, of the leader` : kind))));
  console.log("attempts that were lost, by what became of their node:");
  console.table(counted(lost.map(({ because }) => because ?? "NOT EXPLAINED")));
  const lines = lost.map(attemptLine);
  if (values.out !== undefined) {
    writeFileSync(join(values.out, "attempts.txt"), `${lines.join("\n")}\n`);
    writeFileSync(join(values.out, "faults.txt"), `${faults.map(faultLine).join("\n")}\n`);
  }
  const unexplained = lines.filter((line) => line.includes("NOT EXPLAINED"));
  for (const line of unexplained.slice(0, 20)) console.log(line);
  const missing = result.acknowledged - result.tasks;
  const isFine = result.problems.length === 0 && missing === 0 && unexplained.length === 0;
  console.log(
    isFine
      ? `chaos: ${result.tasks} tasks, each ended once as it should, every history legal, every attempt explained`
      : `chaos: FAILED (${missing} missing, ${unexplained.length} attempts not explained)`,
  );
  code = isFine ? 0 : 1;
} finally {
  await server.stop();
}
process.exit(code);

function counted(words: readonly string[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const word of words) counts[word] = (counts[word] ?? 0) + 1;
  return counts;
}

function attemptLine(attempt: ExplainedAttempt): string {
  const { task, nodeId, assignedAt, lostAt, reason, words, because, fault } = attempt;
  const put = because === null ? "NOT EXPLAINED" : because + (fault === null ? "" : ` (#${fault})`);
  return (
    `task ${task} attempt ${attempt.attempt} on ${nodeId} from ${time(assignedAt)} to ${time(lostAt)}: ` +
    `${put} [${reason}${words === "" ? "" : `: ${words}`}]`
  );
}

function faultLine({ kind, nodeId, led, from, to }: Fault, index: number): string {
  const who = nodeId === null ? "" : ` of ${nodeId}${led ? ", which led" : ""}`;
  return `#${index} ${kind}${who} from ${time(from)} to ${time(to)}`;
}

function time(at: number): string {
  return new Date(at).toISOString().slice(11, 23);
}
