/**
 * One round: a job runs, a fault strikes, and everything a user has to trust is checked: how the job ended, that its
 * metrics and reported losses enclose the target's counts, that no row was used twice, and that nothing is left behind.
 */

import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type ClusterClient, ClusterError, hasEnded } from "../../../src/client/client.ts";
import type { Random } from "../../../src/core/base/random.ts";
import type { Progress } from "../../../src/core/cluster/messages.ts";
import { type Fault, pause } from "./faults.ts";
import { type Nodes, orphans } from "./nodes.ts";
import type { Sites } from "./sites.ts";
import type { SmallDisks } from "./small-disks.ts";
import type { CountingTarget } from "./target.ts";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const cli = fileURLToPath(new URL("../../../bin/hyperscale.js", import.meta.url));
/** Beyond the plan of the job: for what waits for a silent datacenter or an isolated worker, and a busy machine. */
const LATE_MS_MAX = 240_000;
const SUBMIT_ATTEMPTS_MAX = 3;

export interface Stage {
  readonly nodes: Nodes;
  readonly sites: Sites;
  readonly disks: SmallDisks;
  readonly target: CountingTarget;
  readonly datacenters: readonly string[];
  readonly durationMs: number;
  readonly awayMs: number;
}

export interface Outcome {
  readonly fault: string;
  readonly struck: string;
  readonly expected: string;
  readonly seen: string;
  readonly counted: number;
  readonly made: number;
  /** Null: unknown. */
  readonly notCounted: number | null;
  readonly problems: readonly string[];
}

export async function playRound(stage: Stage, fault: Fault, random: Random): Promise<Outcome> {
  const { nodes, target } = stage;
  const client = nodes.client();
  try {
    const problems: string[] = [];
    const unsettled = await settled(client, stage);
    if (unsettled !== null) problems.push(`before the round: ${unsettled}`);
    target.reset();
    const job = await submitted(stage);
    if (fault.atOnce === undefined) await loading(client, job, stage, random);
    const before = nodes.descendants();
    const complain = (problem: string): void => void problems.push(problem);
    const struck = await fault.strike({ ...stage, random, client, job, complain });
    const end = await ended(client, job, stage.durationMs + LATE_MS_MAX);
    await nodes.startAll();
    const left = await settled(client, stage);
    if (left !== null) problems.push(left);
    const leaked = orphans(before, nodes.descendants());
    if (leaked.length > 0) problems.push(`${leaked.length} processes are left without a node`);
    return judged(stage, fault, struck, end, problems);
  } finally {
    await client.close();
  }
}

function judged(
  { target }: Stage,
  { expected, name }: Fault,
  struck: string,
  end: Progress | null,
  problems: string[],
): Outcome {
  const lost = end?.summary?.lost ?? [];
  const counted = end?.summary?.totals?.requests ?? 0;
  const isKnown = lost.every(({ requestsNotCounted }) => typeof requestsNotCounted === "number");
  const notCounted = isKnown
    ? lost.reduce((sum, one) => sum + (one.requestsNotCounted ?? 0), 0)
    : null;
  const { requests: made, rowsRepeated } = target;
  if (end === null) problems.push("the job has not ended");
  else if (!expected.includes(end.status))
    problems.push(`${end.status} (${end.reason}) instead of ${expected.join(" or ")}`);
  if (counted > made) problems.push(`${counted} counted, ${made} made`);
  if (notCounted !== null && made > counted + notCounted)
    problems.push(`${made - counted - notCounted} requests are in no figure and in no loss`);
  if (rowsRepeated > 0) problems.push(`${rowsRepeated} rows were used again`);
  const seen = end?.status ?? "-";
  return {
    ...{ fault: name, struck, expected: expected.join("/"), seen, counted, made, notCounted },
    problems,
  };
}

/** By the command line, as people do; its id. A machine that is too busy to compile the file is asked again. */
async function submitted(stage: Stage): Promise<string> {
  const key = randomUUID();
  for (let attempt = 1; ; attempt++) {
    try {
      return await submittedOnce(stage, key);
    } catch (error) {
      if (attempt === SUBMIT_ATTEMPTS_MAX) throw error;
    }
  }
}

async function submittedOnce(
  { datacenters, durationMs, nodes, target }: Stage,
  key: string,
): Promise<string> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [
      ...[cli, "submit", "test/chaos/cluster/flow.ts", "--detach", "--duration", `${durationMs}ms`],
      ...["-e", `HYPERSCALE_TARGET=${target.url}`, "--credentials", nodes.credentials],
      ...["--gate", nodes.addresses().join(","), "--datacenters", datacenters.join(",")],
      ...["--idempotency-key", key],
    ],
    { cwd: root },
  );
  return stdout.trim();
}

/** Until every datacenter loads, and some time of the plan longer. */
async function loading(
  client: ClusterClient,
  job: string,
  { datacenters, durationMs }: Stage,
  random: Random,
): Promise<void> {
  const until = Date.now() + LATE_MS_MAX;
  while (Date.now() < until) {
    const view = await client.status(job);
    if (hasEnded(view.status)) throw new Error(`${job} is ${view.status}: ${view.reason}`);
    const busy = view.datacenters.filter(({ requests }) => requests > 0);
    if (busy.length === datacenters.length) break;
    await pause(200);
  }
  await pause(random.below(Math.floor(durationMs / 4)));
}

/** Null when it has not ended in time. */
async function ended(client: ClusterClient, job: string, msMax: number): Promise<Progress | null> {
  const until = Date.now() + msMax;
  while (Date.now() < until) {
    try {
      const progress = await client.progress(job, 0, false);
      if (hasEnded(progress.status)) return progress;
    } catch (error) {
      if (!(error instanceof ClusterError)) throw error;
    }
    await pause(500);
  }
  return null;
}

/** Everybody is there and has nothing to do, and nothing loads the target; else what is not so. */
async function settled(client: ClusterClient, stage: Stage): Promise<string | null> {
  const until = Date.now() + LATE_MS_MAX;
  let problem: string | null = null;
  while (Date.now() < until) {
    const { requests } = stage.target;
    problem = await unsettled(client, stage);
    await pause(1_000);
    if (problem === null && stage.target.requests === requests) return null;
    problem ??= "the target is still loaded";
  }
  return problem;
}

async function unsettled(client: ClusterClient, { nodes }: Stage): Promise<string | null> {
  try {
    const known = await client.nodes();
    for (const name of nodes.names()) {
      const node = known.find((one) => one.name === name);
      if (node?.status !== "alive") return `${name} is ${node?.status ?? "unknown"}`;
      if (node.coresUsed > 0) return `${name} still has ${node.coresUsed} cores in use`;
    }
    for (const { cores, coresFree, name, status } of await client.datacenters()) {
      if (status !== "healthy") return `${name} is ${status}`;
      if (coresFree < cores) return `${cores - coresFree} cores of ${name} are still given away`;
    }
    return null;
  } catch (error) {
    if (!(error instanceof ClusterError)) throw error;
    return error.message;
  }
}
