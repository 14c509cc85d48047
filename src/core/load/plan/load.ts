/**
 * The required load at any time, as plain data, and this core's exact part of it.
 *
 *   closed   users │    ╱▔▔▔▔╲        stages are straight lines; the whole number of users
 *                  │  ╱        ╲      is split over the cores without a gap or an overlap
 *
 *   open     rate  │    ╱▔▔▔▔▔        arrival j happens when the area under the line passes j;
 *                  │ ││││||||||||     core i of n takes the arrivals j ≡ i (mod n)
 *
 * Plan time is milliseconds since the plan began. The clock inverts the area under the rate exactly (a square root
 * inside ramps), so no drift builds up however long a run is, and n cores together produce exactly the schedule of
 * one core.
 */

import { assert, assertNever } from "../../base/assert.ts";
import { formatDuration } from "../../base/duration.ts";
import type { SearchPlan } from "./breakpoint.ts";

/** Linear from `from` to `to`: virtual users in closed models, arrivals per second in open ones. */
export interface Stage {
  readonly durationMs: number;
  readonly from: number;
  readonly to: number;
}

export type LoadPlan =
  /** Closed: this many users loop. */
  | ({ readonly kind: "vus"; readonly stages: readonly Stage[] } & Throttled)
  /** Open: arrivals per second, whatever the target answers, with a bound on users. */
  | {
      readonly kind: "rate";
      readonly stages: readonly Stage[];
      readonly vusMax: number;
      /** At random times instead of evenly spaced. */
      readonly poisson?: boolean;
    }
  /** Searches for the highest load at which the thresholds hold, while it runs. */
  | ({
      readonly kind: "search";
      /** Concurrent users, for a search of a rate. */
      readonly vusMax: number;
      readonly durationMsMax: number;
    } & SearchPlan)
  /** A total of iterations, taken by any free user. */
  | IterationPlan<"shared">
  /** A number of iterations for every user. */
  | IterationPlan<"perUser">
  /** A workflow that measures nothing: one pass of one user. (C30-10) */
  | { readonly kind: "once"; readonly durationMsMax: number };

interface Throttled {
  /** Maximum iterations started per second, by all users together. */
  readonly rateMax?: number;
}

interface IterationPlan<Kind extends string> extends Throttled {
  readonly kind: Kind;
  readonly vus: number;
  readonly iterations: number;
  readonly durationMsMax: number;
}

/** The part of one core: it is `index` of `count`; `users` has the virtual users of every core. (PROV-1) */
export interface Share {
  readonly index: number;
  readonly count: number;
  readonly users: readonly number[];
  /** Where other cores make the rest of the load: the plan of these ones, and which part of the whole it is. */
  readonly part?: (PlanPart & { readonly load: LoadPlan }) | undefined;
}

/** Which part of a plan one of several places makes; see `split.ts`. */
export interface PlanPart {
  /** Index of this place among `count`. */
  readonly index: number;
  readonly count: number;
  /** Weights of all places: a range is divided in these proportions. */
  readonly weights: readonly number[];
  /** First user number; and the number of users of all places. */
  readonly firstUser: number;
  readonly users: number;
  /** First shared iteration. */
  readonly firstIteration: number;
  /** Iterations of each place, where iterations end the load. */
  readonly iterations?: readonly number[] | undefined;
}

/** Name of a core's share, unique in the plan, for its random draws. */
export function shareName({ index, part }: Share): string {
  return part === undefined ? String(index) : `${part.index}.${index}`;
}

/** Null when iterations, not time, end the load. */
export function planDurationMs(plan: LoadPlan): number | null {
  return plan.kind === "vus" || plan.kind === "rate" ? stagesMs(plan.stages) : null;
}

export function planVusMax(plan: LoadPlan): number {
  switch (plan.kind) {
    case "vus":
      return Math.ceil(
        plan.stages.reduce((most, stage) => Math.max(most, stage.from, stage.to), 0),
      );
    case "rate":
    case "search":
      return plan.vusMax;
    case "shared":
    case "perUser":
      return plan.vus;
    case "once":
      return 1;
    default:
      return assertNever(plan);
  }
}

/** Iterations begin at planned times, and lateness against them is measured. */
export function isOpen(plan: LoadPlan): boolean {
  return plan.kind === "rate" || (plan.kind === "search" && plan.of === "rate");
}

/** True when the load continues until its time is over or it is stopped, however few users there are. */
export function isOpenEnded(plan: LoadPlan): boolean {
  return plan.kind === "vus" || plan.kind === "rate" || plan.kind === "search";
}

/** Whole users required at that time. Open models may use all of their bound. */
export function targetUsers(plan: LoadPlan, elapsedMs: number): number {
  return plan.kind === "vus" ? Math.round(lineAt(plan.stages, elapsedMs)) : planVusMax(plan);
}

/** Arrivals per second required at that time, or the start of a search; zero for models without a rate. */
export function targetRate(plan: LoadPlan, elapsedMs: number): number {
  if (plan.kind === "search") return plan.of === "rate" ? plan.from : 0;
  return plan.kind === "rate" ? lineAt(plan.stages, elapsedMs) : 0;
}

/** Arrivals required up to that time: the area under the rate. */
export function plannedArrivals(plan: LoadPlan, untilMs: number): number {
  if (plan.kind === "search") return (targetRate(plan, 0) * untilMs) / 1_000;
  return plan.kind === "rate" ? areaUnder(plan.stages, untilMs) : 0;
}

/** The users or arrivals per second at some time; 1 where they never change. */
export function loadAt(plan: LoadPlan, ms: number): number {
  return "stages" in plan ? lineAt(plan.stages, ms) : 1;
}

/** The most users or arrivals per second from then on; 1 where they never change. */
export function peakLoad(plan: LoadPlan, fromMs: number): number {
  if (!("stages" in plan)) return 1;
  let peak = lineAt(plan.stages, fromMs);
  let end = 0;
  for (const { durationMs, from, to } of plan.stages) {
    const start = end;
    end += durationMs;
    if (end > fromMs) peak = Math.max(peak, to, start >= fromMs ? from : 0);
  }
  return peak;
}

/**
 * This core's part of a changing total: over all cores it sums to the total, it is `users[index]` when the total is
 * their sum, and it never shrinks while the total grows (so a ramp only ever starts users). Users are assigned round by
 * round to the cores with capacity; a total beyond the sum starts another pass.
 */
export function shareOfUsers(total: number, share: Share): number {
  assert(Number.isSafeInteger(total) && total >= 0, "a number of users is a whole number");
  assert(share.users.length === share.count, "every core has its number of users");
  const { users, index } = share;
  const own = users[index] ?? 0;
  const capacity = users.reduce((sum, each) => sum + each, 0);
  if (capacity === 0) return 0;
  const deals = Math.floor(total / capacity);
  let left = total - deals * capacity;
  // Full rounds: every core with capacity left gets one in each.
  let level = 0;
  for (;;) {
    const open = users.reduce((count, each) => (each > level ? count + 1 : count), 0);
    if (open === 0 || left < open) break;
    const lowest = users.reduce((low, each) => (each > level && each < low ? each : low), capacity);
    const rounds = Math.min(lowest - level, Math.floor(left / open));
    level += rounds;
    left -= rounds * open;
  }
  // The last, partial round goes to the first cores in order that have capacity.
  let before = 0;
  for (let i = 0; i < index; i++) if ((users[i] ?? 0) > level) before++;
  const extra = own > level && before < left ? 1 : 0;
  return deals * own + Math.min(own, level) + extra;
}

/** For people: "64 virtual users for 30s", "1000/s for 10s, at most 2000 virtual users". */
export function describePlan(plan: LoadPlan, warmupMs: number, startAfterMs = 0): string {
  const warmup = warmupMs > 0 ? `, warm-up ${short(warmupMs)}` : "";
  const delay = startAfterMs > 0 ? `, beginning after ${short(startAfterMs)}` : "";
  return describeLoad(plan) + warmup + delay;
}

function describeLoad(plan: LoadPlan): string {
  switch (plan.kind) {
    case "vus": {
      const noun = ` virtual user${pluralOf(plan.stages)}`;
      return describeStages(plan.stages, (n) => String(n), noun) + throttle(plan);
    }
    case "rate": {
      const poisson = plan.poisson === true ? " at random" : "";
      const rates = describeStages(plan.stages, (n) => `${trim(n)}/s`, poisson);
      return `${rates}, at most ${users(plan.vusMax)}`;
    }
    case "search":
      return describeSearch(plan);
    case "shared":
      return `${iterations(plan)} shared by ${users(plan.vus)}${throttle(plan)}, at most ${short(plan.durationMsMax)}`;
    case "perUser":
      return `${users(plan.vus)} with ${iterations(plan)} each${throttle(plan)}, at most ${short(plan.durationMsMax)}`;
    case "once":
      return `one pass, at most ${short(plan.durationMsMax)}`;
    default:
      return assertNever(plan);
  }
}

function describeStages(
  stages: readonly Stage[],
  amount: (n: number) => string,
  noun: string,
): string {
  return stages
    .map((stage, at) => {
      const unit = at === 0 ? noun : "";
      if (stage.from === stage.to) {
        return `${amount(stage.from)}${unit} for ${short(stage.durationMs)}`;
      }
      return `${amount(stage.from)} to ${amount(stage.to)}${unit} in ${short(stage.durationMs)}`;
    })
    .join(", then ");
}

function throttle({ rateMax }: Throttled): string {
  return rateMax === undefined ? "" : `, at most ${trim(rateMax)}/s`;
}

function describeSearch(plan: Extract<LoadPlan, { kind: "search" }>): string {
  const [unit, noun] = plan.of === "rate" ? ["/s", ""] : ["", " virtual users"];
  const range = `${trim(plan.from)} to ${trim(plan.to)}${unit}${noun}`;
  return `search for the breakpoint from ${range}, ${short(plan.holdMs)} each`;
}

function pluralOf(stages: readonly Stage[]): string {
  return stages.length === 1 && stages[0]?.from === 1 && stages[0].to === 1 ? "" : "s";
}

function users(n: number): string {
  return count(n, "virtual user");
}

function iterations(plan: { readonly iterations: number }): string {
  return count(plan.iterations, "iteration");
}

function count(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? "" : "s"}`;
}

function trim(n: number): string {
  return String(Number(n.toFixed(3)));
}

function short(ms: number): string {
  return formatDuration(ms).replace(/(?<=[mh])00[sm]$/, "");
}

function stagesMs(stages: readonly Stage[]): number {
  return stages.reduce((sum, stage) => sum + stage.durationMs, 0);
}

/** Area up to a time, in units of its height times seconds. */
function areaUnder(stages: readonly Stage[], untilMs: number): number {
  let area = 0;
  let start = 0;
  for (const { durationMs, from, to } of stages) {
    const inside = Math.min(durationMs, untilMs - start);
    // A stage of no length only sets the height of the next.
    if (inside <= 0) continue;
    const reached = from + ((to - from) * inside) / durationMs;
    area += (((from + reached) / 2) * inside) / 1_000;
    start += durationMs;
  }
  return area;
}

/** Height of the line at a time; before and after the plan that of its ends. */
function lineAt(stages: readonly Stage[], elapsedMs: number): number {
  let start = 0;
  for (const stage of stages) {
    const inside = elapsedMs - start;
    if (inside < stage.durationMs) {
      const fraction = Math.max(0, inside) / stage.durationMs;
      return stage.from + (stage.to - stage.from) * fraction;
    }
    start += stage.durationMs;
  }
  return stages.at(-1)?.to ?? 0;
}

/** Without the limit on iterations per second, which is enforced elsewhere. */
export function unthrottled(plan: LoadPlan): LoadPlan {
  if (!("rateMax" in plan)) return plan;
  const { rateMax: _kept, ...rest } = plan;
  return rest;
}

/** A share of a plan's arrivals; users of a closed plan are shared, not split. */
export function shareOfPlan(plan: LoadPlan, share: number): LoadPlan {
  if (plan.kind !== "rate") return plan;
  const stages = plan.stages.map(({ durationMs, from, to }) => ({
    durationMs,
    from: from * share,
    to: to * share,
  }));
  return { ...plan, stages };
}
