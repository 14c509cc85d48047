/**
 * Random schedules of one group. A seed draws how wild it is, which kinds of trouble exist, how the
 * clocks run and how reads are answered; at the end everything heals and the group must lead and
 * commit again within a bound of virtual time.
 */

import { Random } from "../../src/core/base/random.ts";
import type { VsrConfig } from "../../src/core/ledger/group/config.ts";
import { VSR_DEFAULTS } from "../../src/core/ledger/group/config.ts";
import type { VsrRules } from "../../src/core/ledger/group/rules.ts";
import { VSR_RULES } from "../../src/core/ledger/group/rules.ts";
import type { GroupNode } from "./group.ts";
import { Group } from "./group.ts";

/** Short times and small windows, so that a walk of some hundred steps meets every border. */
const WALK_CONFIG: VsrConfig = {
  ...VSR_DEFAULTS,
  leaseMs: 1_000,
  clockDriftMax: 0.05,
  leaseMarginMs: 1,
  renewMs: 300,
  retransmitMs: 100,
  commitNoticeMs: 50,
  viewChangeTimeoutMs: 1_000,
  viewChangeBackoffMs: 200,
  rankDelayMs: 50,
  fetchRetryMs: 100,
  windowEntries: 8,
  batchEntries: 3,
  tailEntries: 2,
};

/** Within this much virtual time of a healed network a primary must lead and commit. */
const HEAL_MS_MAX = 20 * (WALK_CONFIG.leaseMs + WALK_CONFIG.viewChangeTimeoutMs);
const HEAL_STEPS_MAX = 40_000;

export interface WalkOptions {
  readonly seed: number | string;
  readonly members: number;
  readonly spares: number;
  readonly steps: number;
  readonly rules?: Partial<VsrRules>;
  /** Clocks run apart beyond the bound, or leases are off: the log must be safe all the same. (VSR-22) */
  readonly clocks?: "bounded" | "wild" | "noLeases";
  readonly damageOnly?: boolean;
}

interface Weather {
  readonly trouble: number;
  readonly crash: number;
  readonly loss: number;
  readonly double: number;
  readonly pause: number;
  readonly cut: number;
  readonly reconfigure: number;
  readonly compact: number;
  readonly reads: number;
  readonly giveUp: number;
  readonly wake: number;
  readonly hurry: number;
  readonly order: number;
}

function draw(random: Random): Weather {
  // Each kind of trouble is absent in half of the walks, so that the others get their turn.
  const some = (most: number): number => (random.chance(0.5) ? random.float() * most : 0);
  return {
    trouble: random.pick([0.02, 0.05, 0.1, 0.3]),
    crash: some(1),
    loss: some(1),
    double: some(0.5),
    pause: some(0.5),
    cut: some(1),
    reconfigure: some(6),
    compact: some(0.7),
    reads: some(0.5),
    giveUp: some(1),
    wake: some(0.5),
    hurry: random.pick([0.1, 0.3, 0.6]),
    order: random.pick([0.4, 0.8, 0.95]),
  };
}

/** One walk; `group.violation` is null when nothing broke. */
export function walk(options: WalkOptions): Group {
  const { seed, members, spares, steps, clocks = "bounded", damageOnly = false } = options;
  const random = new Random(`weather/${seed}`);
  const weather = draw(random);
  // Beyond the bound on drift, lease reads do not guarantee freshness.
  const leaseReads = clocks === "bounded" && random.chance(0.5);
  const leaseMs = clocks === "noLeases" ? 0 : WALK_CONFIG.leaseMs;
  const idleMs = random.pick([300, 2_000, Number.POSITIVE_INFINITY]);
  const config = { ...WALK_CONFIG, leaseReads, leaseMs, idleMs };
  const rules = { ...VSR_RULES, ...options.rules };
  const drift = clocks === "wild" ? 3 : WALK_CONFIG.clockDriftMax;
  const group = new Group({ seed, members, spares, config, rules, drift, damageOnly });
  for (let step = 0; step < steps && group.violation === null; step++) wander(group, weather);
  return group;
}

/** Like `walk`, and then all is well again. */
export function walkAndHeal(options: WalkOptions): Group {
  const group = walk(options);
  if (group.violation === null) heal(group);
  return group;
}

function wander(group: Group, weather: Weather): void {
  const { random, nodes, network } = group;
  group.now += random.float() * random.pick([5, 50, 300]);
  const node = random.pick(nodes);
  if (random.chance(weather.trouble)) {
    disturb(group, node, weather);
    return;
  }
  const leading = nodes.filter(({ replica }) => replica?.state.acting === true);
  if (random.chance(weather.reads * 0.3)) {
    group.read(leading.length > 0 ? random.pick(leading) : node);
  } else if (random.chance(0.6) && network.length > 0) {
    group.deliver(random.chance(weather.order) ? 0 : random.below(network.length));
  } else if (node.records.length > node.durable) {
    group.sync(node, node.durable + 1 + random.below(node.records.length - node.durable));
  } else if (random.chance(0.4)) {
    proposeSomething(group, leading.length > 0 ? random.pick(leading) : node);
  } else {
    const due = node.replica?.nextDeadline() ?? null;
    if (due !== null && random.chance(weather.hurry)) {
      group.now = Math.max(group.now, (due - node.offset) / node.rate);
    }
    group.tick(node);
  }
}

function proposeSomething(group: Group, node: GroupNode): void {
  const last = group.events.at(-1);
  if (last !== undefined && group.random.chance(0.1)) group.proposeAgain(node, last);
  else group.propose(node);
}

function disturb(group: Group, node: GroupNode, weather: Weather): void {
  const { random, network } = group;
  const kinds: readonly (readonly [number, () => void])[] = [
    [weather.crash, () => (node.replica === null ? group.restart(node) : group.crash(node))],
    [weather.crash * 0.5, () => group.restart(node)],
    [weather.loss, () => void network.splice(random.below(network.length + 1), 1)],
    [weather.loss * 0.1, () => void network.splice(0, network.length)],
    [weather.double, () => double(group)],
    [weather.pause, () => pause(group, node)],
    [weather.cut, () => cut(group, node)],
    [weather.reconfigure, () => reconfigure(group, group.primary ?? node)],
    [weather.compact, () => group.compact(node)],
    [weather.wake, () => group.step(node, { kind: "wake" })],
    [weather.wake, () => sleepAlone(group)],
    [weather.giveUp, () => giveUp(group, group.primary ?? node)],
  ];
  let choice = random.float() * kinds.reduce((sum, [weight]) => sum + weight, 0);
  for (const [weight, act] of kinds) {
    choice -= weight;
    if (choice > 0 || weight === 0) continue;
    act();
    return;
  }
}

/** The same packets again: one on its way, or several from long ago. */
function double(group: Group): void {
  const { random, network, past } = group;
  const flight = network[random.below(network.length + 1)];
  if (flight !== undefined) network.push(flight);
  // Old acks are the most tempting to believe.
  const acks = past.filter(({ message }) => message.kind === "prepareResponse");
  const old = random.chance(0.5) ? past : acks;
  for (let count = random.below(8); count > 0 && old.length > 0; count--) {
    network.unshift(random.pick(old));
  }
}

function pause(group: Group, node: GroupNode): void {
  node.paused = !node.paused;
  // A minute stopped is like a minute later.
  if (node.paused && group.random.chance(0.3)) group.now += group.random.float() * 5_000;
}

/** Apart, half apart, or together again. */
function cut(group: Group, node: GroupNode): void {
  const whole = node.deaf || node.mute;
  node.deaf = !whole && group.random.chance(0.8);
  node.mute = !whole && group.random.chance(0.8);
}

/** A primary resigns; its resignation is sent, and perhaps nothing is received any more. */
function giveUp(group: Group, node: GroupNode): void {
  group.step(node, { kind: "giveUp" });
  node.deaf ||= group.random.chance(0.3);
}

/** A sleeping primary receives nothing for a while: the others may continue without it. */
function sleepAlone(group: Group): void {
  const asleep = group.nodes.find(({ replica }) => {
    return replica?.state.asleep === true && replica.state.acting;
  });
  if (asleep === undefined) return;
  asleep.deaf = true;
  for (const node of group.nodes) if (node !== asleep) group.step(node, { kind: "wake" });
}

/** Somebody else in for somebody; now and then one more or one less. */
function reconfigure(group: Group, node: GroupNode): void {
  const { random } = group;
  const state = node.replica?.state;
  if (state === undefined || !state.acting) return;
  const outside = group.nodes.map(({ id }) => id).filter((id) => !state.members.includes(id));
  const place = random.below(state.members.length);
  const members = [...state.members];
  if (outside.length > 0 && random.chance(0.15)) members.push(random.pick(outside));
  else if (members.length > 3 && random.chance(0.3)) members.splice(place, 1);
  else if (outside.length > 0) members[place] = random.pick(outside);
  else members.splice(place, members.length > 3 ? 1 : 0);
  group.step(node, { kind: "reconfigure", eventId: `r${group.now}`, members });
}

/** Everybody is up, nothing is lost: somebody must lead, and commit. */
function heal(group: Group): void {
  const { nodes, network } = group;
  for (const node of nodes) {
    node.paused = false;
    node.deaf = false;
    node.mute = false;
    // A resigned primary was about to exit.
    if (node.replica?.state.leaving === true) group.crash(node);
    group.restart(node);
    group.step(node, { kind: "wake" });
  }
  // All died before their first record was safe: there never was a group.
  if (nodes.every(({ durable }) => durable === 0)) return;
  const end = group.now + HEAL_MS_MAX;
  let event = "";
  for (let step = 0; step < HEAL_STEPS_MAX && group.now < end; step++) {
    if (group.violation !== null) return;
    if (event !== "" && group.checks.committed.some(({ eventId }) => eventId === event)) return;
    if (network.length > 0) group.deliver(0);
    for (const node of nodes) {
      if (node.records.length > node.durable) group.sync(node, node.records.length);
    }
    const { primary } = group;
    if (primary?.replica !== undefined && event === "") event = group.propose(primary);
    // A primary that was deposed meanwhile could not keep what it took.
    else if (primary !== undefined && (step % 50 === 0 || network.length === 0)) {
      group.proposeAgain(primary, event);
    }
    if (network.length === 0) passTime(group);
  }
  group.checks.report(`LIVE: nobody leads and commits: ${describe(group)}`);
}

function passTime(group: Group): void {
  let next = Number.POSITIVE_INFINITY;
  for (const node of group.nodes) {
    const due = node.replica?.nextDeadline() ?? null;
    if (due !== null) next = Math.min(next, (due - node.offset) / node.rate);
  }
  group.now = Math.max(group.now + 0.01, Math.min(next, group.now + 1_000));
  for (const node of group.nodes) group.tick(node);
}

function describe(group: Group): string {
  const of = ({ id, replica }: GroupNode): string => {
    if (replica === null) return `${id} down`;
    const { epoch, status, knownView, commit, acting, learner } = replica.state;
    const role = acting ? "acting" : learner ? "learner" : status;
    return `${id} ${role} ${epoch}/${knownView} at ${commit}`;
  };
  return group.nodes.map(of).join(", ");
}
