/**
 * May the load generator be believed? Three answers that are no, each with a code and words of its own:
 *
 *   saturated   it had no CPU left, or its own code kept its event loop from its timers
 *   data        virtual users waited for rows of a feed, or for their share of the iterations
 *   noisy       other programs of the machine kept it from running; nothing says that the load was too large
 *
 * Lag is weighted by time: a stop of one second counts as a hundred samples of 10 ms, so a share of samples is a share
 * of the time (`engine/recorder.ts`).
 */

import type { Histogram } from "../stats/histogram.ts";
import { formatCount, formatPercent } from "./format.ts";
import { missedByUsers } from "./load-figures.ts";
import type { CoreHealth, GeneratorHealth } from "./model.ts";
import type { RowWait, WorkflowData } from "./workflow-data.ts";

/** Calls during a timer delay beyond this are measured wrong by as much. */
const LATE_MS = 50;
/** The generator was the limit when a core used this much of its CPU… */
const LIMITED_CPU = 0.9;
/** …when arrivals were missed while one was at least this busy… */
const LIMITED_CPU_MISSED = 0.8;
/** …when its own code kept it late for this share of the time: more than a slow start of a short run… */
const LIMITED_BLOCKED = 0.05;
/** …or when users waited for rows for this share of theirs. */
const LIMITED_ROW_WAIT = 0.05;
/** Other programs disturbed the run when a core was late for this share of the time; shared CI runners stay below. */
const NOISY_LATE = 0.1;
/** Fewer late samples than this, half a second of them, are the slow start of a short run. */
const LATE_SAMPLES_MIN = 50;
/** Less waiting for rows than this, over all users, is the start or the end of a short run. */
const ROW_WAIT_MS_MIN = 1_000;
/** Advice for when the generator itself is the limit. */
const MORE_ROOM = "use more cores (--cores), a smaller load, or a larger machine";

export interface GeneratorFacts {
  readonly cores: readonly CoreHealth[];
  /** CPUs of the machine, 0 for several machines: several workflows may need more processes than it has. */
  readonly cpus: number;
  readonly arrivalsMissed: number;
  readonly rowWaits: readonly RowWait[];
  /** A call of any step was answered: otherwise there is nothing that the generator could have distorted. */
  readonly isAnswered: boolean;
}

/** Facts about the generator derived from the measured load. */
export function loadFacts(
  data: readonly WorkflowData[],
  measured: readonly { readonly rowWait: RowWait }[],
): Pick<GeneratorFacts, "arrivalsMissed" | "rowWaits" | "isAnswered"> {
  return {
    arrivalsMissed: data.reduce((all, { arrivals }) => all + missedByUsers(arrivals), 0),
    rowWaits: measured.map(({ rowWait }) => rowWait),
    isAnswered: data.some(({ steps }) => steps.some(({ totals }) => totals.isAnswered)),
  };
}

type Finding = Pick<GeneratorHealth, "cause" | "reason">;

export function generatorHealth(facts: GeneratorFacts): GeneratorHealth {
  const { cores } = facts;
  const cpu = cores.reduce((most, core) => Math.max(most, core.cpu), 0);
  const lagMsP99 = cores.reduce((most, core) => Math.max(most, core.lagMsP99), 0);
  const found = facts.isAnswered ? findingOf(facts, cpu) : null;
  const { cause = null, reason = null } = found ?? {};
  return { cpu, lagMsP99, limited: cause !== null && cause !== "noisy", cause, reason, cores };
}

function findingOf(facts: GeneratorFacts, cpu: number): Finding | null {
  const saturated = busy(facts, cpu) ?? blocked(facts.cores) ?? crowded(facts);
  if (saturated !== null) return { cause: "saturated", reason: saturated };
  const starved = waiting(facts.rowWaits);
  if (starved !== null) return { cause: "data", reason: starved };
  const disturbed = noisy(facts.cores);
  return disturbed === null ? null : { cause: "noisy", reason: disturbed };
}

function busy({ arrivalsMissed, cores }: GeneratorFacts, cpu: number): string | null {
  const core = cores.find((one) => one.cpu === cpu)?.core ?? 0;
  const used = `executor core ${core} used ${formatPercent(cpu)} of its CPU`;
  if (cpu >= LIMITED_CPU) return `${used}; ${MORE_ROOM}`;
  if (arrivalsMissed === 0 || cpu < LIMITED_CPU_MISSED) return null;
  return `${formatCount(arrivalsMissed)} arrivals were never started while ${used}; ${MORE_ROOM}`;
}

function blocked(cores: readonly CoreHealth[]): string | null {
  const worst = worstBy(cores, (core) => core.blockedShare ?? 0);
  const share = worst?.blockedShare ?? 0;
  if (worst === undefined || share < LIMITED_BLOCKED) return null;
  const late = `executor core ${worst.core} was more than ${LATE_MS} ms late for ${formatPercent(share)} of the time`;
  return `${late}, kept busy by its own code, and all times include that wait; ${MORE_ROOM}`;
}

/** Each process may look idle while together they use the whole machine. */
function crowded({ cores, cpus }: GeneratorFacts): string | null {
  const used = cores.reduce((sum, core) => sum + core.cpu, 0);
  // The number of CPUs is unknown where several machines are merged.
  if (cpus === 0 || cores.length <= cpus || used < LIMITED_CPU * cpus) return null;
  const share = `${formatPercent(used / cpus)} of ${cpus} CPUs`;
  const who = `${cores.length} executor cores together used ${share}`;
  return `${who}; use fewer cores (--cores), a smaller load, or a larger machine`;
}

function waiting(waits: readonly RowWait[]): string | null {
  const shareOf = ({ userMs, waitedMs }: RowWait): number => waitedMs / Math.max(userMs, waitedMs);
  const worst = worstBy(
    waits.filter(({ waitedMs }) => waitedMs >= ROW_WAIT_MS_MIN),
    shareOf,
  );
  if (worst === undefined || shareOf(worst) < LIMITED_ROW_WAIT) return null;
  return (
    `virtual users of "${worst.workflow}" spent ${formatPercent(shareOf(worst))} of their time waiting for rows or ` +
    "iterations that the coordinator hands out; use a feed whose rows may repeat, or less load"
  );
}

function noisy(cores: readonly CoreHealth[]): string | null {
  const worst = worstBy(cores, (core) => core.lateShare ?? 0);
  const share = worst?.lateShare ?? 0;
  if (worst === undefined || share < NOISY_LATE) return null;
  return (
    `other programs kept this machine busy: executor core ${worst.core} was more than ${LATE_MS} ms late for ` +
    `${formatPercent(share)} of the time though it used ${formatPercent(worst.cpu)} of a CPU, and all times ` +
    "include that wait; end them, or use another machine"
  );
}

/** Shares of the time in which a core was late, and in which its own code was the cause. */
export function lateShares(
  lag: Histogram,
  ownLag: Histogram,
): Required<Pick<CoreHealth, "lateShare" | "blockedShare">> {
  const share = (one: Histogram): number => {
    const late = one.count - one.countAtOrBelow(LATE_MS * 1_000);
    return late < LATE_SAMPLES_MIN ? 0 : late / lag.count;
  };
  return { lateShare: share(lag), blockedShare: share(ownLag) };
}

function worstBy<Item>(items: readonly Item[], amount: (item: Item) => number): Item | undefined {
  return items.toSorted((a, b) => amount(b) - amount(a))[0];
}

/** Headline for a generator that cannot be trusted; null for one that can. */
export function generatorTitle({ cause, limited }: GeneratorHealth): string | null {
  if (limited) return "The load generator was the limit, not the target";
  return cause === "noisy" ? "Other programs disturbed the load generator" : null;
}
