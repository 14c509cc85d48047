/**
 * One seed from start to verdict: warm-up, chaos, healing, agreement, drill.
 *
 * After healing, liveness must return: views agree within a bound (M5), a leader may act within a bound (E9), then no
 * healthy member is declared dead (M4), and a crash is noticed by all in time (M7).
 */

import { Defect } from "../../src/core/base/assert.ts";
import { Random } from "../../src/core/base/random.ts";
import type { ElectionConfig } from "../../src/core/membership/election/config.ts";
import { ELECTION_PROFILES } from "../../src/core/membership/election/config.ts";
import { QUEUE_LENGTH_MAX } from "../../src/core/membership/swim/broadcast-queue.ts";
import type { ProfileName, SwimConfig } from "../../src/core/membership/swim/config.ts";
import { SWIM_PROFILES } from "../../src/core/membership/swim/config.ts";
import { EXCHANGES_MAX, RELAYS_MAX } from "../../src/core/membership/swim/limits.ts";
import type { TraceLine } from "../kernel/world.ts";
import { DetectionChecker } from "./checkers/detection.ts";
import { ElectionChecker } from "./checkers/election.ts";
import { MembershipChecker } from "./checkers/membership.ts";
import type { Violation } from "./checkers/violations.ts";
import { Violations } from "./checkers/violations.ts";
import { Cluster } from "./cluster.ts";
import { FaultDriver } from "./faults.ts";
import { rulesWithout } from "./mutants.ts";
import type { SimNode } from "./node.ts";
import type { SwarmPlan, SwarmSize } from "./swarm.ts";
import { CALM_MS, drawPlan } from "./swarm.ts";

export interface RunOptions {
  readonly seed: number;
  readonly minutes: number;
  readonly mutant: string | null;
  /** Indices of the plan's faults to keep; null keeps all. */
  readonly faults: readonly number[] | null;
  readonly size: SwarmSize | null;
}

export interface RunResult {
  readonly seed: number;
  readonly hash: string;
  readonly violation: Violation | null;
  readonly events: number;
  readonly simulatedMs: number;
  readonly faultCount: number;
  /** Rare things that happened; a list over all seeds shows what was never exercised. */
  readonly marks: readonly string[];
  readonly lastNotes: readonly TraceLine[];
}

/** Small caps in the simulator, so that floods reach them. */
const UNCONFIRMED_MAX = 64;
const GREETINGS_OPEN_MAX = 257;
/** Three exchanges of whole views, which far apart members hold once a minute. */
const AGREE_MS: Readonly<Record<ProfileName, number>> = {
  ...{ lan: 60_000, local: 60_000, dc: 60_000 },
  wan: 180_000,
};
/** Groups that came up apart learn of each other when they ask for the name again. */
const NAMES_MS = 100_000;
/** A voter may be cooling down from the chaos; afterwards it takes some patiences. */
const COOLDOWN_MS_MAX = 120_000;
const PATIENCES_MAX = 5;
/** Suspicion without any confirmation, for 26 members, plus a round of probes. */
const DRILL_MS: Readonly<Record<ProfileName, number>> = {
  lan: 25_000,
  wan: 190_000,
  local: 20_000,
  dc: 9_000,
};

export function runSeed(options: RunOptions): RunResult {
  const plan = drawPlan(new Random(`swarm/${options.seed}`), options.minutes, options.size);
  const run = new Run(options, plan);
  let violation: Violation | null;
  try {
    violation = run.play();
  } catch (error) {
    if (!(error instanceof Defect)) throw error;
    violation = { id: "DEFECT", text: error.message, at: run.cluster.world.now };
  }
  const { world } = run.cluster;
  return {
    seed: options.seed,
    hash: world.traceHash(),
    violation,
    events: world.eventCount,
    simulatedMs: world.now,
    faultCount: plan.faults.length,
    marks: [...run.marks],
    lastNotes: violation === null ? [] : world.lastNotes(60),
  };
}

class Run {
  readonly #options: RunOptions;
  readonly #plan: SwarmPlan;
  readonly #swimConfig: SwimConfig;
  readonly #electionConfig: ElectionConfig;
  readonly cluster: Cluster;
  readonly marks = new Set<string>();
  readonly #violations: Violations;
  readonly #election: ElectionChecker;
  /** Set once views have agreed after healing: from then on no death is excused. */
  #calm = false;

  constructor(options: RunOptions, plan: SwarmPlan) {
    this.#options = options;
    this.#plan = plan;
    this.#electionConfig = ELECTION_PROFILES[plan.election];
    this.#swimConfig = { ...SWIM_PROFILES[plan.profile], unconfirmedMax: UNCONFIRMED_MAX };
    this.cluster = new Cluster({
      seed: options.seed,
      members: plan.members,
      electing: plan.electing,
      swimConfig: this.#swimConfig,
      electionConfig: this.#electionConfig,
      rules: rulesWithout(options.mutant),
      clockDrift: plan.clockDrift,
      ...(plan.discovery === "names" ? { seedCount: 0 } : {}),
      named: plan.discovery !== "seeds",
    });
    const { world, nodes } = this.cluster;
    this.#violations = new Violations(world);
    const voters = nodes.slice(0, plan.electing);
    this.#election = new ElectionChecker(world, this.#violations, this.#electionConfig, voters);
  }

  play(): Violation | null {
    const { world } = this.cluster;
    this.#watch();
    this.cluster.startAll(2_000);
    const { healAt } = this.#plan;
    if (this.#until(healAt)) return this.#violations.first;
    const { profile, discovery } = this.#plan;
    const agreeMs = AGREE_MS[profile] + (discovery === "names" ? NAMES_MS : 0);
    this.#await("M5", "views agree", agreeMs, () => this.cluster.viewsAgree());
    const { leaderTimeoutMs, leaderTimeoutJitterMs } = this.#electionConfig;
    const patienceMs = leaderTimeoutMs + leaderTimeoutJitterMs;
    const leaderMs = COOLDOWN_MS_MAX + PATIENCES_MAX * patienceMs;
    this.#await("E9", "a leader may act", leaderMs, () => this.cluster.acting().length === 1);
    this.#calm = true;
    this.#drill();
    this.#until(Math.max(world.now, healAt + CALM_MS, this.#options.minutes * 60_000));
    return this.#violations.first;
  }

  #watch(): void {
    const { world } = this.cluster;
    const caps = {
      unconfirmed: UNCONFIRMED_MAX,
      queue: QUEUE_LENGTH_MAX,
      relays: RELAYS_MAX,
      greetings: GREETINGS_OPEN_MAX,
      exchanges: EXCHANGES_MAX,
    };
    const membership = new MembershipChecker(this.#violations, caps);
    this.cluster.watch(membership);
    this.cluster.watch(new DetectionChecker(world, this.#violations, this.#swimConfig));
    this.cluster.watch(this.#election);
    this.cluster.watch({
      onSwim: (node, _input, effects) => {
        for (const effect of effects) {
          if (effect.kind === "warning") this.marks.add(`swim.${effect.code}`);
          if (effect.kind !== "memberChanged") continue;
          const { change } = effect;
          this.marks.add(`swim.${change.kind}`);
          if (change.kind !== "confirmed" && change.kind !== "update") {
            world.note(`${node.id}: ${change.kind} ${change.member.id} (${change.why})`);
          }
          if (change.kind === "failed") this.#onDeath(node, change.member.id);
        }
      },
      onElection: (node, _input, effects) => {
        for (const effect of effects) {
          if (effect.kind === "send") continue;
          this.marks.add(`election.${effect.kind}`);
          world.note(`${node.id}: ${JSON.stringify(effect)}`);
        }
      },
    });
    const driver = new FaultDriver(this.cluster, (node) => membership.onWipe(node));
    const keep = this.#options.faults === null ? null : new Set(this.#options.faults);
    driver.schedule(this.#plan, keep);
  }

  #onDeath(observer: SimNode, id: SimNode["id"]): void {
    const node = this.cluster.byId(id);
    if (node === undefined) return;
    if (this.#calm && node.state === "up") {
      this.#violations.report("M4", `${observer.id} declares the healthy ${id} dead`);
    }
  }

  /** Runs on; true when something broke. */
  #until(at: number): boolean {
    this.cluster.world.runUntil(at, () => this.#violations.first !== null);
    return this.#violations.first !== null;
  }

  #await(id: string, what: string, boundMs: number, holds: () => boolean): void {
    const { world } = this.cluster;
    const limit = this.#plan.healAt + boundMs;
    while (!holds()) {
      if (this.#until(Math.min(world.now + 500, limit))) return;
      if (world.now < limit || holds()) continue;
      this.#violations.report(id, `not within ${boundMs} ms of healing: ${what}`);
      return;
    }
  }

  /** M7: one member dies for real, and all must know in time. */
  #drill(): void {
    if (this.#violations.first !== null) return;
    const { world, nodes } = this.cluster;
    // Suspicions of the healing may still be open; let them end first.
    if (this.#until(world.now + 5_000)) return;
    const victim = nodes[this.#plan.electing] ?? nodes[0];
    if (victim === undefined || nodes.length < 3) return;
    victim.crash();
    const boundMs = DRILL_MS[this.#plan.profile];
    if (this.#until(world.now + boundMs)) return;
    const unaware = this.cluster.up().filter((node) => {
      const status = node.swim?.look(victim.id)?.status;
      return status === "alive" || status === "suspect";
    });
    if (unaware.length > 0) {
      const names = unaware.map(({ id }) => id).join(", ");
      this.#violations.report("M7", `${names} have not noticed ${victim.id} in ${boundMs} ms`);
    }
  }
}
