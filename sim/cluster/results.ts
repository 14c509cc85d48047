/**
 * Answers to clients, checked against what really happened.
 *
 *   T3   one key is one job; a job ends once, and every client learns the same end
 *   T5   counted <= made <= counted + calls of the cores reported as lost; a job without metrics made no load, or
 *        reports its datacenters as lost, which were cut off for long
 *   T8   a job whose cancel was confirmed ends cancelled, and soon makes no more load
 *   T10  where only managers had faults, nothing of a job is lost
 *   T13  a job makes load in no more datacenters than requested, and in each as one job
 *   T15  a job that reports no losses has made all of its plan
 *   T16  where only cores are killed, others continue their shares, and nothing is made twice
 *   P3   where nodes are overloaded and none is lost, totals are exact in the end
 */

import { countOf } from "../../src/core/cluster/gate/spec.ts";
import { GATE_DEFAULTS } from "../../src/core/cluster/gate/types.ts";
import type { ClientAnswer, Control, Progress } from "../../src/core/cluster/messages.ts";
import { planDurationMs, plannedArrivals } from "../../src/core/load/plan/load.ts";
import type { RunSummary } from "../../src/core/load/results/model.ts";
import type { World } from "../kernel/world.ts";
import type { Violations } from "../membership/checkers/violations.ts";
import { TICK_MS } from "./core.ts";
import type { JobPlan } from "./jobs.ts";
import type { TiersPlan } from "./swarm.ts";
import { callsOf, type JobTruth, type Truth } from "./truth.ts";
import { datacenterName } from "./world.ts";

/** A share is reassigned a limited number of times: with more losses than this one may be abandoned. */
const LOSSES_MAX = 3;
/** By then another core continues a share. */
const REPLACED_MS_MAX = 3_000;

/** Minimum outage of a datacenter that is given up; elections after it add to the silence. */
const AWAY_MS_MIN = GATE_DEFAULTS.lostMs / 2;

/** From the confirmed cancel, or from healing, to the last call: work in flight, its kill, and a new leader. */
const CANCELLED_MS_MAX = 60_000;
/** The same where only executor cores have ever failed. */
const CANCELLED_MS_MAX_CALM = 10_000;

interface Ended {
  readonly plan: JobPlan;
  readonly progress: Progress;
}

interface Steered {
  /** Controls sent, whatever their outcome. */
  readonly kinds: Set<Control["kind"]>;
  /** When a cancel was confirmed. */
  cancelledAt: number | null;
}

export class Results {
  readonly #world: World;
  readonly #violations: Violations;
  readonly #truth: Truth;
  readonly #scope: TiersPlan["scope"];
  readonly #hasGates: boolean;
  readonly #healAt: number;
  /** Datacenters cut off for long enough to be given up. */
  readonly #lostPlaces: ReadonlySet<string>;
  readonly #jobOf = new Map<string, string>();
  readonly #ended = new Map<string, Ended>();
  /** When a client first learnt the end, by key. */
  readonly #endedAt = new Map<string, number>();
  readonly #steered = new Map<string, Steered>();

  constructor(world: World, violations: Violations, truth: Truth, plan: TiersPlan) {
    this.#world = world;
    this.#violations = violations;
    this.#truth = truth;
    this.#scope = plan.scope;
    this.#hasGates = plan.gates > 0;
    this.#healAt = plan.healAt;
    this.#lostPlaces = lostDatacenters(plan);
  }

  /** Jobs that were reported as accepted, with their keys. */
  get accepted(): ReadonlyMap<string, string> {
    return this.#jobOf;
  }

  onSubmitted(key: string, answer: ClientAnswer): void {
    if (answer.kind !== "accepted") {
      this.#violations.report("T3", `${key} is refused: ${JSON.stringify(answer)}`);
      return;
    }
    const known = this.#jobOf.get(key);
    this.#violations.check(known === undefined || known === answer.job, "T3", () => {
      return `${key} is job ${known} and job ${answer.job}`;
    });
    this.#jobOf.set(key, answer.job);
    this.#world.note(`${key} is ${answer.job}`);
  }

  /** When a client first learnt the end; null: none has. */
  endedAt(key: string): number | null {
    return this.#endedAt.get(key) ?? null;
  }

  /** True when a core was opened for it. */
  hasBegun(key: string): boolean {
    return this.#truth.job(key).cores.length > 0;
  }

  onLost(job: string, answer: ClientAnswer): void {
    this.#violations.report("T3", `${job} was accepted, and now: ${JSON.stringify(answer)}`);
  }

  onSteering(job: string, { kind }: Control): void {
    this.#steeredOf(job).kinds.add(kind);
  }

  onSteered(job: string, { kind }: Control, answer: ClientAnswer): void {
    this.#world.note(`${kind} of ${job}: ${JSON.stringify(answer)}`);
    if (kind === "cancel" && answer.kind === "controlled")
      this.#steeredOf(job).cancelledAt ??= this.#world.now;
  }

  /** Records that a core makes load for the submission under this key. */
  onLoading(key: string, where: string): void {
    const job = this.#jobOf.get(key);
    const cancelledAt = job === undefined ? null : this.#steeredOf(job).cancelledAt;
    if (cancelledAt === null) return;
    const isCalm = this.#scope === "none" || this.#scope === "cores";
    const untilMs = isCalm
      ? cancelledAt + CANCELLED_MS_MAX_CALM
      : Math.max(cancelledAt, this.#healAt) + CANCELLED_MS_MAX;
    this.#violations.check(this.#world.now < untilMs, "T8", () => {
      return `${where} makes load for ${job}, whose cancel was confirmed at ${cancelledAt} ms`;
    });
  }

  #steeredOf(job: string): Steered {
    const known = this.#steered.get(job) ?? { kinds: new Set(), cancelledAt: null };
    this.#steered.set(job, known);
    return known;
  }

  onEnded(job: string, plan: JobPlan, progress: Progress): void {
    const { reason, status, summary } = progress;
    const known = this.#ended.get(job)?.progress;
    if (!this.#endedAt.has(plan.key)) this.#endedAt.set(plan.key, this.#world.now);
    this.#world.note(`${job} is ${status}: ${reason}, ${summary === null ? "no" : "a"} summary`);
    this.#violations.check(known === undefined || known.status === status, "T3", () => {
      return `${job} ended as ${known?.status} and as ${status}`;
    });
    const hasResult = status === "COMPLETED" || status === "PARTIAL";
    this.#violations.check(!hasResult || summary !== null, "T3", () => {
      return `${job} is ${status}, and nobody has its result`;
    });
    if (known === undefined || known.summary === null) this.#ended.set(job, { plan, progress });
  }

  /** Runs when everything is over. */
  judge(): void {
    for (const [job, ended] of this.#ended) this.#judge(job, ended);
  }

  /**
   * True when the reported loss of the datacenters is plausible: the worst faults disable most managers in other ways,
   * too.
   */
  #mayBeLost({ reason, status }: Progress, places: readonly string[]): boolean {
    const [, text] = /(?:^|; )([^:;]+): lost$/.exec(reason ?? "") ?? [];
    if (text === undefined || (status !== "FAILED" && status !== "CANCELLED")) return false;
    const names = text.split(", ");
    const areAway = this.#scope === "all" || names.every((name) => this.#lostPlaces.has(name));
    return areAway && places.every((place) => names.includes(place));
  }

  #judge(job: string, { plan, progress }: Ended): void {
    const { reason, status, summary } = progress;
    const truth = this.#truth.job(plan.key);
    const { cancelledAt, kinds } = this.#steeredOf(job);
    this.#violations.check(status !== "CANCELLED" || kinds.has("cancel"), "T3", () => {
      return `${job} is cancelled, and nobody asked for it`;
    });
    const wasLoading = cancelledAt !== null && truth.lastCallAt > cancelledAt;
    this.#violations.check(!wasLoading || status === "CANCELLED", "T8", () => {
      return `the cancel of ${job} was confirmed while it made load, and it is ${status}`;
    });
    if (summary === null) {
      const made = truth.cores.filter(({ calls }) => calls.size > 0);
      const places = made.map(({ datacenter }) => datacenter);
      this.#violations.check(made.length === 0 || this.#mayBeLost(progress, places), "T5", () => {
        return `${job} is ${status} (${reason}) without figures, and its cores made load`;
      });
    } else this.#compare(job, plan, summary, truth);
    this.#comparePlaces(job, plan, truth);
    const isSpared = this.#scope === "managers" || this.#scope === "gates";
    // Faults of two managers may follow so closely that a worker is isolated for its whole minute.
    const isAlone = truth.cores.some(({ worker }) => this.#truth.isolated.has(worker));
    if (isSpared && !isAlone && !kinds.has("cancel"))
      this.#violations.check(status === "COMPLETED" && isExact(summary), "T10", () => {
        const said = [...(summary?.lost ?? []).map(({ what }) => what), ...(summary?.notes ?? [])];
        return `${job} is ${status} (${reason}), and says: ${said.join("; ")}`;
      });
    if (this.#scope === "pressure" && !kinds.has("cancel"))
      this.#compareTotals(job, plan, progress, truth);
    if (status === "COMPLETED" && kinds.size === 0 && isWhole(summary))
      this.#comparePlan(job, plan, truth);
    if (this.#scope === "cores" && kinds.size === 0 && summary !== null)
      this.#compareShares(job, plan, summary, truth);
  }

  #compare(job: string, { bundle }: JobPlan, summary: RunSummary, truth: JobTruth): void {
    const lost = new Set(summary.lost.map(({ core }) => core));
    // Over several datacenters cores have the same numbers: whatever is lost, nothing is counted twice.
    const isOpen = saysMissing(summary) || (this.#hasGates && summary.lost.length > 0);
    for (const { name } of bundle.manifests) {
      const counted = countedOf(summary, name);
      const made = truth.cores.reduce((sum, core) => sum + callsOf(core, name), 0);
      const stated = truth.cores
        .filter(({ core }) => lost.has(core))
        .reduce((sum, core) => sum + callsOf(core, name), 0);
      this.#violations.check(counted <= made, "T5", () => {
        return `${name} of ${job} counts ${counted} calls, ${made} were made`;
      });
      const most = isOpen ? Number.POSITIVE_INFINITY : counted + stated;
      this.#violations.check(made <= most, "T5", () => {
        const silent = truth.cores.filter((one) => !lost.has(one.core) && callsOf(one, name) > 0);
        const others = silent.map((one) => `${one.core} at ${one.worker}: ${callsOf(one, name)}`);
        const what = `${counted} are counted, cores that are lost made ${stated}`;
        return `${name} of ${job} made ${made} calls, ${what}, others ${others.join(", ")}`;
      });
    }
    if (!isOpen) this.#compareStated(job, summary, truth);
  }

  /** The stated losses cover everything that is not counted. */
  #compareStated(job: string, summary: RunSummary, { cores }: JobTruth): void {
    const steps = summary.workflows.flatMap((one) => one.steps);
    const counted = steps.reduce((sum, { requests }) => sum + requests, 0);
    const made = cores.flatMap(({ calls }) => [...calls.values()]);
    const all = made.reduce((sum, calls) => sum + calls, 0);
    // Where only cores are killed the other processes know what they did.
    const unknown = this.#scope === "cores" ? 0 : Number.POSITIVE_INFINITY;
    const notCounted = summary.lost.reduce(
      (sum, one) => sum + (one.requestsNotCounted ?? unknown),
      0,
    );
    this.#violations.check(all <= counted + notCounted, "T5", () => {
      return `${job} made ${all} calls, ${counted} are counted and at most ${notCounted} not`;
    });
  }

  /** An overloaded node reports less often, and everything in the end. */
  #compareTotals(job: string, { bundle }: JobPlan, progress: Progress, truth: JobTruth): void {
    const { reason, status, summary } = progress;
    this.#violations.check(status === "COMPLETED" && summary?.lost.length === 0, "P3", () => {
      const lost = summary?.lost.map(({ what }) => what).join("; ");
      return `${job} is ${status} (${reason}) where nobody is lost, lost: ${lost}`;
    });
    for (const { name } of bundle.manifests) {
      const counted = summary === null ? 0 : countedOf(summary, name);
      const made = truth.cores.reduce((sum, core) => sum + callsOf(core, name), 0);
      this.#violations.check(counted === made, "P3", () => {
        return `${name} of ${job} counts ${counted} calls after pressure, ${made} were made`;
      });
    }
  }

  /** Shares that were prepared elsewhere and left make no load. */
  #comparePlaces(job: string, { routing }: JobPlan, { cores }: JobTruth): void {
    const made = cores.filter(({ calls }) => calls.size > 0);
    const jobs = new Set(made.map((one) => `${one.datacenter} ${one.job}`));
    this.#violations.check(jobs.size <= countOf(routing), "T13", () => {
      return `${job} made load as ${[...jobs].join(", ")}`;
    });
  }

  /** Only the killed core itself may keep its share from continuing. */
  #compareShares(job: string, { bundle }: JobPlan, summary: RunSummary, truth: JobTruth): void {
    for (const { load, name } of bundle.manifests) {
      const made = truth.cores.reduce((sum, core) => sum + callsOf(core, name), 0);
      this.#violations.check(made <= plannedCalls(load), "T16", () => {
        return `${name} of ${job} made ${made} calls of ${plannedCalls(load)}`;
      });
    }
    const isTimed = bundle.manifests.every(({ load }) => isDealtAgain(load));
    if (!isTimed || summary.lost.length > LOSSES_MAX) return;
    for (const { dealtAgainTo, missingMs, what, worker } of summary.lost) {
      // A datacenter that was given up has no worker, and its share is not taken over.
      const isOpen = worker != null && dealtAgainTo === null;
      this.#violations.check(!isOpen || (missingMs ?? 0) < REPLACED_MS_MAX, "T16", () => {
        return `nobody went on with a share of ${job} for ${missingMs} ms: ${what}`;
      });
    }
  }

  #comparePlan(job: string, { bundle, routing }: JobPlan, truth: JobTruth): void {
    for (const { load, name } of bundle.manifests) {
      const { rows } = bundle.behaviours[name] ?? { rows: 0 };
      const made = truth.cores.reduce((sum, core) => sum + callsOf(core, name), 0);
      const isOpenEnded = load.kind === "vus" || load.kind === "rate";
      // Users who wait for a row do not call.
      if (isOpenEnded && rows > 0) continue;
      const places = countOf(routing);
      const planned = plannedCalls(load) * (routing.each ? places : 1);
      // Each part of a rate is rounded by itself.
      const lessMax = load.kind === "rate" && !routing.each ? places - 1 : 0;
      this.#violations.check(made <= planned && made >= planned - lessMax, "T15", () => {
        return `${name} of ${job} made ${made} calls of ${planned}, and nothing is said of it`;
      });
    }
  }
}

function lostDatacenters({ faults }: TiersPlan): ReadonlySet<string> {
  const awayMs = new Map<string, number>();
  for (const { fault } of faults) {
    if (fault.kind !== "cutDatacenter" && fault.kind !== "loseDatacenter") continue;
    const name = datacenterName(fault.place);
    awayMs.set(name, (awayMs.get(name) ?? 0) + fault.forMs);
  }
  return new Set([...awayMs].flatMap(([name, ms]) => (ms >= AWAY_MS_MIN ? [name] : [])));
}

/** True for loads whose remaining work follows from the time. */
function isDealtAgain({ kind }: JobPlan["submission"]["manifests"][number]["load"]): boolean {
  return kind === "vus" || kind === "rate";
}

function plannedCalls(load: JobPlan["submission"]["manifests"][number]["load"]): number {
  switch (load.kind) {
    case "shared":
      return load.iterations;
    case "perUser":
      return load.iterations * load.vus;
    case "vus": {
      const ticks = Math.ceil((planDurationMs(load) ?? 0) / TICK_MS);
      return ticks * (load.stages[0]?.from ?? 0);
    }
    default: {
      const ticks = Math.ceil((planDurationMs(load) ?? 0) / TICK_MS);
      return Math.floor(plannedArrivals(load, ticks * TICK_MS));
    }
  }
}

function countedOf({ workflows }: RunSummary, name: string): number {
  const steps = workflows.find((one) => one.name === name)?.steps ?? [];
  return steps.reduce((sum, { requests }) => sum + requests, 0);
}

/** True when a new leader reports missing metrics of finished shares. */
function saysMissing({ notes }: RunSummary): boolean {
  return notes.some((note) => note.includes("are missing"));
}

/** True when nothing is lost or missing. */
function isExact(summary: RunSummary | null): summary is RunSummary {
  return summary !== null && summary.lost.length === 0 && !saysMissing(summary);
}

function isWhole(summary: RunSummary | null): boolean {
  if (!isExact(summary)) return false;
  // No numbers or iterations were granted until its time was up.
  return !summary.thresholds.some(({ expression }) => expression === "every iteration was done");
}
