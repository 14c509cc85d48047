/**
 * `npm run sim:figures [-- names]`: metrics of membership and leadership that only a simulation can measure, each as
 * one line or one table. All use the production machines, codec and sealing layout.
 */

import { Command } from "commander";
import type { NodeId } from "../../src/core/base/ids.ts";
import { ELECTION_OF, ELECTION_PROFILES } from "../../src/core/membership/election/config.ts";
import type { SwimConfig } from "../../src/core/membership/swim/config.ts";
import { type ProfileName, SWIM_PROFILES } from "../../src/core/membership/swim/config.ts";
import { CALM_LINKS } from "../kernel/network.ts";
import { DetectionChecker } from "./checkers/detection.ts";
import { ElectionChecker } from "./checkers/election.ts";
import { MembershipChecker } from "./checkers/membership.ts";
import { Violations } from "./checkers/violations.ts";
import { Cluster } from "./cluster.ts";
import type { SimNode } from "./node.ts";
import { runSeed } from "./run.ts";

const say = (line: string): void => void process.stdout.write(`${line}\n`);
const seconds = (ms: number): string => (ms / 1_000).toFixed(2);

function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}

/** Runs until it holds; the time it took, or null after `limitMs`. */
function timeUntil(
  cluster: Cluster,
  limitMs: number,
  stepMs: number,
  holds: () => boolean,
): number | null {
  const { world } = cluster;
  const from = world.now;
  while (!holds()) {
    if (world.now - from >= limitMs) return null;
    world.runUntil(world.now + stepMs);
  }
  return world.now - from;
}

function settled(members: number, config: SwimConfig, seed: number): Cluster {
  const cluster = new Cluster({ seed, members, swimConfig: config });
  cluster.startAll(2_000);
  if (timeUntil(cluster, 120_000, 500, () => cluster.viewsAgree()) === null) {
    throw new Error(`${members} members do not agree after two minutes`);
  }
  // First contacts take a few more seconds.
  cluster.world.runUntil(cluster.world.now + 5_000 + members * 100);
  return cluster;
}

/** From a crash until every survivor reports it, repeated in one world. */
function dissemination(profile: "lan" | "dc", members: number, trials: number): void {
  const cluster = settled(members, SWIM_PROFILES[profile], 1);
  const { world, nodes } = cluster;
  let victim: SimNode | null = null;
  const reported = new Set<NodeId>();
  cluster.watch({
    onSwim: (node, _input, effects) => {
      for (const effect of effects) {
        if (effect.kind !== "memberChanged") continue;
        // A member that had not reached the victim yet forgets it instead of declaring it dead.
        const { kind, member } = effect.change;
        if (kind !== "failed" && kind !== "forget") continue;
        if (member.id === victim?.id) reported.add(node.id);
      }
    },
  });
  const random = world.random.fork("victims");
  const times: number[] = [];
  for (let trial = 0; trial < trials; trial++) {
    world.runUntil(world.now + random.float() * 1_000);
    victim = random.pick(nodes);
    reported.clear();
    victim.crash();
    const took = timeUntil(cluster, 120_000, 20, () => reported.size >= members - 1);
    times.push(took ?? 120_000);
    victim.start();
    timeUntil(cluster, 120_000, 500, () => cluster.viewsAgree());
    world.runUntil(world.now + 4_000);
  }
  times.sort((a, b) => a - b);
  const [p50, p99, tail] = [0.5, 0.99, 0.999].map((share) => quantile(times, share));
  const bound = 1.5 * (p50 ?? 0) + 2_000;
  say(
    `| ${profile} | ${members} | ${trials} | ${seconds(p50 ?? 0)} | ${seconds(p99 ?? 0)} | ` +
      `${seconds(tail ?? 0)} | ${seconds(bound)} | ${(tail ?? 0) <= bound ? "yes" : "NO"} |`,
  );
}

/** Healthy members declared dead, by node-hours, at a loss. */
function falseDeaths(members: number, hours: number, loss: number): void {
  const cluster = settled(members, SWIM_PROFILES.lan, 2);
  const { world, network } = cluster;
  network.faults = { ...CALM_LINKS, loss };
  let [deaths, suspicions] = [0, 0];
  cluster.watch({
    onSwim: (_node, _input, effects) => {
      for (const effect of effects) {
        if (effect.kind !== "memberChanged") continue;
        if (effect.change.kind === "failed") deaths++;
        if (effect.change.kind === "suspect") suspicions++;
      }
    },
  });
  world.runUntil(world.now + hours * 3_600_000);
  const nodeHours = members * hours;
  say(`| ${loss * 100} % | ${members} | ${nodeHours} | ${deaths} | ${suspicions} |`);
}

/** Some members are slow by seconds: counts healthy ones declared dead, with and without Lifeguard. */
function slowMembers(lifeguard: boolean, minutes: number): number {
  const config: SwimConfig = { ...SWIM_PROFILES.lan, lifeguard, streamPings: false };
  let deaths = 0;
  for (const delayMs of [3_000, 6_000, 10_000]) {
    const cluster = settled(32, config, delayMs);
    const slow = new Set(cluster.nodes.slice(0, 4).map(({ id }) => id));
    for (let node = 0; node < 4; node++) cluster.network.slow(node, delayMs);
    cluster.watch({
      onSwim: (_node, _input, effects) => {
        for (const effect of effects) {
          if (effect.kind !== "memberChanged" || effect.change.kind !== "failed") continue;
          // Count only deaths declared by an expired suspicion, not those learned from others.
          if (effect.change.why !== "suspicion expired") continue;
          if (!slow.has(effect.change.member.id)) deaths++;
        }
      },
    });
    cluster.world.runUntil(cluster.world.now + minutes * 60_000);
  }
  return deaths;
}

function partitionHeal(members: number, minutes: number, seed: number): number | null {
  // The dead are forgotten after an hour here, so that the longest cut outlives the memory of them.
  const config = { ...SWIM_PROFILES.lan, deadReapMs: 3_600_000 };
  const cluster = settled(members, config, seed);
  const { world, network } = cluster;
  const half = Math.floor(members / 2);
  const links: [number, number][] = [];
  for (let a = 0; a < half; a++) for (let b = half; b < members; b++) links.push([a, b], [b, a]);
  for (const [a, b] of links) network.cut(a, b);
  world.runUntil(world.now + minutes * 60_000);
  for (const [a, b] of links) network.mend(a, b);
  return timeUntil(cluster, 300_000, 100, () => cluster.viewsAgree());
}

function massRestart(members: number, seed: number): number | null {
  const cluster = settled(members, SWIM_PROFILES.lan, seed);
  for (const node of cluster.nodes) node.crash();
  cluster.startAll(10_000);
  cluster.world.runUntil(cluster.world.now + 10_000);
  return timeUntil(cluster, 300_000, 100, () => cluster.viewsAgree());
}

/** Datagrams per member and second, idle, by size of the cluster. */
function traffic(members: number, windowMs: number): void {
  const cluster = new Cluster({ seed: 3, members, swimConfig: SWIM_PROFILES.lan });
  cluster.startAll(20_000 + members * 20);
  const joined = timeUntil(cluster, 900_000, 1_000, () => cluster.viewsAgree());
  const met = timeUntil(cluster, 900_000, 1_000, () =>
    cluster.nodes.every((node) => node.swim?.sizes().unconfirmed === 0),
  );
  // Every member is now known to every other; what gossip is left dies down.
  cluster.world.runUntil(cluster.world.now + 20_000);
  let [datagrams, streams] = [0, 0];
  cluster.watch({
    onSwimDone: (_node, effect) => {
      if (effect.kind === "send") datagrams++;
      if (effect.kind === "openStream") streams++;
    },
  });
  cluster.world.runUntil(cluster.world.now + windowMs);
  const per = (count: number): string => (count / members / (windowMs / 1_000)).toFixed(3);
  const agree = cluster.viewsAgree() ? "yes" : "no";
  say(
    `| ${members} | ${per(datagrams)} | ${per(streams)} | ${agree} | ` +
      `${seconds((joined ?? 0) + (met ?? 0))} |`,
  );
}

/** Crashes the leader repeatedly and measures the time until another may act. As an agent of that profile runs it. */
function failover(profile: ProfileName, trials: number): void {
  const times: number[] = [];
  let terms = 0;
  const leadersOf = new Map<string, Set<NodeId>>();
  for (let seed = 1; times.length < trials; seed++) {
    const cluster = electing(profile, seed);
    cluster.watch({
      onElection: (node, _input, effects) => {
        for (const effect of effects) {
          if (effect.kind !== "becameLeader") continue;
          const key = `${seed}/${effect.term}`;
          leadersOf.set(key, (leadersOf.get(key) ?? new Set()).add(node.id));
          terms++;
        }
      },
    });
    cluster.world.runUntil(FIRST_LEADER_MS);
    // Four changes a minute are allowed before voters cool down; stay below.
    for (let i = 0; i < 20 && times.length < trials; i++) {
      cluster.world.runUntil(cluster.world.now + 20_000 + (i % 7) * 37);
      const [leader] = cluster.acting();
      if (leader === undefined) continue;
      leader.crash();
      times.push(timeUntil(cluster, 60_000, 5, () => cluster.acting().length > 0) ?? 60_000);
      leader.start();
    }
  }
  times.sort((a, b) => a - b);
  const most = Math.max(...[...leadersOf.values()].map((leaders) => leaders.size));
  say(
    `failover, profile ${profile}, over ${trials} crashes: p50 ${seconds(quantile(times, 0.5))} s, p99 ` +
      `${seconds(quantile(times, 0.99))} s, max ${seconds(times.at(-1) ?? 0)} s; ` +
      `${terms} terms, at most ${most} leader per term`,
  );
}

/** Long enough for a first leader in every profile. */
const FIRST_LEADER_MS = 40_000;

function electing(profile: ProfileName, seed: number): Cluster {
  const cluster = new Cluster({
    seed,
    members: 0,
    electing: 5,
    swimConfig: SWIM_PROFILES[profile],
    electionConfig: ELECTION_PROFILES[ELECTION_OF[profile]],
    clockDrift: 0.045,
  });
  cluster.startAll(500);
  return cluster;
}

/** One voter is cut off and comes back, a thousand times: the term must not move. */
function isolations(profile: ProfileName, count: number): void {
  const cluster = electing(profile, 1);
  const { world, network, nodes } = cluster;
  world.runUntil(FIRST_LEADER_MS);
  const random = world.random.fork("isolations");
  const highest = (): number => Math.max(...nodes.map((node) => node.election?.term ?? 0));
  const before = highest();
  for (let i = 0; i < count; i++) {
    const [leader] = cluster.acting();
    const followers = nodes.filter((node) => node !== leader);
    const alone = random.pick(followers).spec.index;
    const oneWay = random.chance(0.3);
    for (const { spec } of nodes) {
      if (spec.index === alone) continue;
      network.cut(spec.index, alone);
      if (!oneWay) network.cut(alone, spec.index);
    }
    world.runUntil(world.now + 500 + random.float() * 8_000);
    network.mendAll();
    world.runUntil(world.now + 300 + random.float() * 2_000);
  }
  say(
    `profile ${profile}, ${count} isolations and rejoins: the term went from ${before} to ${highest()}`,
  );
}

/** Simulated seconds per second of one core: 16 members and 5 electing, full stack, checkers on. */
function speed(): void {
  calmSpeed();
  swarmSpeed();
}

/** Worlds of the swarm with all faults; the first ones only warm up the compiler. */
function swarmSpeed(): void {
  const size = { members: 16, electing: 5 };
  const run = (seed: number) =>
    runSeed({ seed, minutes: 10, mutant: null, faults: null, size }).simulatedMs;
  for (let seed = 101; seed <= 112; seed++) run(seed);
  const before = process.cpuUsage();
  let simulatedMs = 0;
  for (let seed = 1; seed <= 12; seed++) simulatedMs += run(seed);
  const { user, system } = process.cpuUsage(before);
  const perSecond = simulatedMs / ((user + system) / 1_000);
  say(`under the swarm's faults: ${Math.round(perSecond)} simulated s per second of one core`);
}

function calmSpeed(): void {
  const cluster = new Cluster({
    seed: 1,
    members: 16,
    electing: 5,
    swimConfig: SWIM_PROFILES.lan,
    electionConfig: ELECTION_PROFILES.dc,
  });
  const { world, nodes } = cluster;
  const violations = new Violations(world);
  const most = Number.MAX_SAFE_INTEGER;
  const caps = { unconfirmed: most, queue: most, relays: most, greetings: most, exchanges: most };
  cluster.watch(new MembershipChecker(violations, caps));
  cluster.watch(new DetectionChecker(world, violations, SWIM_PROFILES.lan));
  cluster.watch(new ElectionChecker(world, violations, ELECTION_PROFILES.dc, nodes.slice(0, 5)));
  cluster.startAll(1_000);
  cluster.world.runUntil(300_000);
  const simulatedS = 3_000;
  const before = process.cpuUsage();
  const events = cluster.world.eventCount;
  cluster.world.runUntil(cluster.world.now + simulatedS * 1_000);
  const { user, system } = process.cpuUsage(before);
  const cpuS = (user + system) / 1e6;
  if (violations.first !== null) throw new Error(violations.first.text);
  say(
    `without faults: ${Math.round(simulatedS / cpuS)} simulated s per second of one core, ` +
      `${Math.round((cluster.world.eventCount - events) / cpuS)} events/s`,
  );
}

const FIGURES: Readonly<Record<string, (scale: number) => void>> = {
  dissemination: (scale) => {
    say("| profile | members | trials | p50 s | p99 s | p99.9 s | 1.5 p50 + 2 s | holds |");
    say("|---|---|---|---|---|---|---|---|");
    // One in a thousand needs a thousand.
    const trials = Math.max(5, Math.round(1_000 * scale));
    for (const members of [5, 8, 16, 32, 64, 128]) dissemination("lan", members, trials);
    dissemination("dc", 16, trials);
  },
  calm: (scale) => {
    say("| loss | members | node-hours | declared dead | suspicions |");
    say("|---|---|---|---|---|");
    for (const loss of [0, 0.05, 0.1]) falseDeaths(16, 62.5 * scale, loss);
  },
  lifeguard: (scale) => {
    const minutes = Math.round(60 * scale);
    const without = slowMembers(false, minutes);
    const withIt = slowMembers(true, minutes);
    say(
      `4 of 32 slowed by up to 3, 6, 10 s, ${minutes} min each: healthy declared dead ` +
        `without Lifeguard ${without}, with ${withIt} (${(without / Math.max(1, withIt)).toFixed(0)} x fewer)`,
    );
  },
  heal: () => {
    for (const minutes of [1, 10, 150]) {
      const times = [1, 2, 3].map((seed) => partitionHeal(16, minutes, seed));
      say(
        `heal of 8 | 8 after ${minutes} min: ${times.map((ms) => seconds(ms ?? Number.NaN)).join(", ")} s`,
      );
    }
    const restarts = [1, 2, 3].map((seed) => massRestart(64, seed));
    const list = restarts.map((ms) => seconds(ms ?? Number.NaN)).join(", ");
    say(`64 of 64 restarted within 10 s, views equal after: ${list} s`);
  },
  traffic: (scale) => {
    say("| members | datagrams/member/s | streams/member/s | views equal | settled after s |");
    say("|---|---|---|---|---|");
    for (const members of [10, 100, 1_000]) if (members <= 1_000 * scale) traffic(members, 60_000);
  },
  speed: () => speed(),
  election: (scale) => {
    for (const profile of ["lan", "dc", "wan"] as const) failover(profile, Math.round(500 * scale));
    for (const profile of ["lan", "dc"] as const) isolations(profile, Math.round(1_000 * scale));
  },
};

const program = new Command("figures")
  .description(`Measures in simulation: ${Object.keys(FIGURES).join(", ")}.`)
  .argument("[names...]", "which figures; all by default")
  .option("--scale <x>", "multiply trials and hours by this", Number, 1)
  .parse();

const wanted = program.args.length === 0 ? Object.keys(FIGURES) : program.args;
for (const name of wanted) {
  const figure = FIGURES[name];
  if (figure === undefined) {
    throw new Error(`no figure "${name}"; one of ${Object.keys(FIGURES).join(", ")}`);
  }
  say(`## ${name}`);
  const before = process.cpuUsage();
  figure(program.opts<{ scale: number }>().scale);
  const { user, system } = process.cpuUsage(before);
  say(`(took ${((user + system) / 1e6).toFixed(0)} s of one core)`);
}
