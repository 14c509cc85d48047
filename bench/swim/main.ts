/**
 * `npm run bench:swim`: how fast all members learn of a killed one, serf beside us on the same machine at the same
 * time, and the cost of an idle member.
 *
 *     npm run bench:swim                      everything, about 10 minutes
 *     npm run bench:swim -- --trials 5 --sizes 16 --no-idle
 *
 * In each trial one member of each cluster is killed (SIGKILL) at the same time; the clock runs until the last
 * survivor's standard output reports it. Then it is started again and everyone must agree.
 */

import { parseArgs } from "node:util";
import { AgentCluster, cpuMs, freshNet, type Peer, until } from "./agents.ts";
import { SerfCluster, serfVersion } from "./serf.ts";

const { values } = parseArgs({
  options: {
    trials: { type: "string", default: "12" },
    sizes: { type: "string", default: "16,32" },
    "dc-trials": { type: "string", default: "20" },
    "idle-size": { type: "string", default: "64" },
    "idle-seconds": { type: "string", default: "30" },
    "no-idle": { type: "boolean", default: false },
  },
});

const DETECT_MS_MAX = 60_000;

interface Detection {
  readonly firstMs: number;
  readonly allMs: number;
  /** Failures reported for members that were not killed. */
  readonly falseReports: number;
}

async function detection(peers: readonly Peer[], victim: Peer): Promise<Detection> {
  const survivors = peers.filter((peer) => peer !== victim);
  const killedAt = performance.now();
  victim.kill("SIGKILL");
  const reports = (peer: Peer) =>
    peer.events.find(
      ({ event, member, seenAt }) =>
        event === "member-failed" && member === victim.name && seenAt >= killedAt,
    );
  await until(
    () => survivors.every((peer) => reports(peer) !== undefined),
    DETECT_MS_MAX,
    `all report ${victim.name}`,
  );
  const times = survivors.map((peer) => (reports(peer)?.seenAt ?? 0) - killedAt);
  const falseReports = survivors.reduce(
    (sum, { events }) =>
      sum +
      events.filter(
        ({ event, member, seenAt }) =>
          event === "member-failed" && member !== victim.name && seenAt >= killedAt,
      ).length,
    0,
  );
  return { firstMs: Math.min(...times), allMs: Math.max(...times), falseReports };
}

function quantile(sorted: readonly number[], q: number): number {
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * q) - 1)] ?? Number.NaN;
}

function summary(trials: readonly Detection[]) {
  const all = trials.map(({ allMs }) => allMs).sort((a, b) => a - b);
  const first = trials.map(({ firstMs }) => firstMs).sort((a, b) => a - b);
  return {
    first: quantile(first, 0.5),
    p50: quantile(all, 0.5),
    p99: quantile(all, 0.99),
    falseReports: trials.reduce((sum, trial) => sum + trial.falseReports, 0),
  };
}

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(2)} s`;
const say = (text: string): void => void process.stderr.write(`${text}\n`);
const rows: string[][] = [];

/** A different victim each time, never the seed everyone joins by. */
const victimOf = (trial: number, size: number): number => 2 + ((trial * 7) % (size - 1));

async function sideBySide(size: number, trials: number): Promise<void> {
  say(`lan profile, N = ${size}: starting ${size} agents and ${size} of serf …`);
  const ours = new AgentCluster({ net: freshNet(), size, profile: "lan" });
  const theirs = new SerfCluster(freshNet(), size, "lan");
  const oursSeen: Detection[] = [];
  const theirsSeen: Detection[] = [];
  try {
    await Promise.all([ours.startAll(), theirs.startAll()]);
    for (let trial = 0; trial < trials; trial++) {
      const place = victimOf(trial, size);
      const victim = ours.agents[place - 1] as Peer;
      const other = theirs.agents[place - 1] as Peer;
      const [mine, serfs] = await Promise.all([
        detection(ours.agents, victim),
        detection(theirs.agents, other),
      ]);
      oursSeen.push(mine);
      theirsSeen.push(serfs);
      say(
        `  trial ${trial + 1}/${trials}: ours ${seconds(mine.allMs)}, serf ${seconds(serfs.allMs)}`,
      );
      const since = performance.now();
      ours.start(place);
      await theirs.rejoined(theirs.start(place), since);
      await ours.converged();
      // Kills must fall anywhere in the probe rhythm, not at a fixed time after a restart.
      await new Promise((resolve) => setTimeout(resolve, 1_500 + Math.random() * 1_500));
    }
  } finally {
    await Promise.all([ours.stop(), theirs.stop()]);
  }
  const mine = summary(oursSeen);
  const serfs = summary(theirsSeen);
  const line = (who: string, of: ReturnType<typeof summary>, ratio: string): string[] => [
    `lan, N = ${size}`,
    who,
    String(trials),
    seconds(of.first),
    seconds(of.p50),
    seconds(of.p99),
    ratio,
    String(of.falseReports),
  ];
  rows.push(line("hyperscale", mine, (mine.p50 / serfs.p50).toFixed(2)), line("serf", serfs, "1"));
}

async function datacenter(size: number, trials: number): Promise<void> {
  say(`dc profile, N = ${size}: starting …`);
  const ours = new AgentCluster({ net: freshNet(), size, profile: "dc" });
  const seen: Detection[] = [];
  try {
    await ours.startAll();
    for (let trial = 0; trial < trials; trial++) {
      const place = victimOf(trial, size);
      seen.push(await detection(ours.agents, ours.agents[place - 1] as Peer));
      say(`  trial ${trial + 1}/${trials}: ${seconds(seen.at(-1)?.allMs ?? 0)}`);
      ours.start(place);
      await ours.converged();
      await new Promise((resolve) => setTimeout(resolve, 500 + Math.random() * 1_000));
    }
  } finally {
    await ours.stop();
  }
  const { first, p50, p99, falseReports } = summary(seen);
  rows.push([
    `dc, N = ${size}`,
    "hyperscale",
    String(trials),
    seconds(first),
    seconds(p50),
    seconds(p99),
    "",
    String(falseReports),
  ]);
}

async function idleCost(size: number, forSeconds: number): Promise<string> {
  say(`idle cost, N = ${size}: starting …`);
  const ours = new AgentCluster({ net: freshNet(), size, profile: "lan" });
  try {
    await ours.startAll();
    // Joins must have settled, and the engines have compiled what is hot.
    await new Promise((resolve) => setTimeout(resolve, 20_000));
    const before = ours.agents.map(({ pid }) => cpuMs(pid));
    const startedAt = performance.now();
    await new Promise((resolve) => setTimeout(resolve, forSeconds * 1_000));
    const elapsedMs = performance.now() - startedAt;
    const shares = ours.agents
      .map(({ pid }, i) => ((cpuMs(pid) - (before[i] ?? 0)) / elapsedMs) * 100)
      .sort((a, b) => a - b);
    const mean = shares.reduce((sum, share) => sum + share, 0) / shares.length;
    const most = shares.at(-1) ?? 0;
    const figures = `mean ${mean.toFixed(2)} %, most ${most.toFixed(2)} % of a core`;
    return `CPU of one idle member, N = ${size}, over ${forSeconds} s: ${figures}`;
  } finally {
    await ours.stop();
  }
}

function table(head: readonly string[], body: readonly (readonly string[])[]): string {
  const widths = head.map((title, column) =>
    Math.max(title.length, ...body.map((row) => row[column]?.length ?? 0)),
  );
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |`;
  return [
    line(head),
    `|${widths.map((width) => "-".repeat(width + 2)).join("|")}|`,
    ...body.map(line),
  ].join("\n");
}

const serf = serfVersion();
if (serf === null) say('serf is not installed ("apt-get install serf"): only our own figures');
for (const size of values.sizes.split(",").map(Number)) {
  if (serf !== null && size > 0) await sideBySide(size, Number(values.trials));
}
if (Number(values["dc-trials"]) > 0) await datacenter(16, Number(values["dc-trials"]));
const idle = values["no-idle"]
  ? null
  : await idleCost(Number(values["idle-size"]), Number(values["idle-seconds"]));
process.stdout.write(`serf ${serf ?? "absent"}, Node ${process.version}\n\n`);
process.stdout.write(
  `${table(["what", "who", "trials", "first p50", "all p50", "all p99", "ours/serf", "false"], rows)}\n`,
);
if (idle !== null) process.stdout.write(`\n${idle}\n`);
