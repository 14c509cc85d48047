/**
 * Compares every metric of a journey with the server's log and the trails of its bodies, by the documented rules
 * (docs/guide/flows.md). A time must lie between what the log saw and what the body saw around it, so no metric depends
 * on how busy the machine is.
 */

import type {
  Distribution,
  StepSummary,
  WorkflowSummary,
} from "../../src/core/load/results/model.ts";
import { arrivalsOf, ROWS_FEW } from "./grammar.ts";
import type { Deed, Journey, JourneyFlow } from "./journey-grammar.ts";
import {
  EXACT,
  EXACT_MS,
  type JourneyRan,
  SETUP,
  type Trail,
  type TrailGroup,
} from "./journey-run.ts";
import type { Logged } from "./target.ts";

/** Metrics are kept in microseconds, percentiles in cells that are at most 0.05 % off their middle. */
const ROUNDING_MS = 0.01;
const CELL = 0.0005;
/** Timers may end a pause so much early. */
const TIMER_EARLY_MS = 1.5;

type Report = (text: string) => void;

/** Differences as texts; none when every metric is right. */
export function journeyDifferences(ran: JourneyRan): string[] {
  const found: string[] = [];
  for (const { name } of ran.journey.flows) {
    const workflow = ran.summary.workflows.find((one) => one.name === name);
    if (workflow === undefined) found.push(`${name} has no results`);
    else new FlowComparison(ran, workflow, (text) => found.push(`${name}: ${text}`)).all();
  }
  const report: Report = (text) => found.push(text);
  if (ran.journey.mixed) compareShares(ran, report);
  compareExact(ran, report);
  compareNever(ran, report);
  return found;
}

/** Whether the run was not stopped early. */
function whole({ journey, summary }: JourneyRan): boolean {
  return journey.stopAfterMs === null && !summary.thresholds.some(({ aborted }) => aborted);
}

/** Shares of the iterations begun hold on every core to within one per flow. */
function compareShares(ran: JourneyRan, report: Report): void {
  const { flows } = ran.journey;
  const sum = flows.reduce((all, { weight }) => all + weight, 0);
  // A user that still waits for a row of its own when the run is stopped has a share and never begins.
  const [load] = ran.journey.loads;
  const isFed = flows.some(({ rows }) => rows === "once") && !whole(ran);
  const waiting = isFed ? usersOf(load) : 0;
  for (const core of new Set(ran.trails.map((trail) => trail.core))) {
    const begun = ran.trails.filter((trail) => trail.core === core);
    for (const { name, weight } of flows) {
      const own = begun.filter((trail) => trail.flow === name).length;
      const share = (begun.length * weight) / sum;
      if (Math.abs(own - share) > 1 + waiting)
        report(`${name} began ${own} of ${begun.length} on core ${core}, its share is ${share}`);
    }
  }
}

function usersOf(load: Journey["loads"][number] | undefined): number {
  return load?.kind === "open" ? load.maxVus : (load?.vus ?? 0);
}

/** A step that never succeeded fails the run, whatever succeeded beside it. */
function compareNever({ summary }: JourneyRan, report: Report): void {
  const steps = summary.workflows.find(({ name }) => name === EXACT)?.steps ?? [];
  if (!steps.some(({ ok, requests }) => ok === 0 && requests > 0)) return;
  const gate = summary.thresholds.find(
    ({ expression, workflow }) => workflow === EXACT && expression.startsWith("every step succ"),
  );
  if (gate?.passed !== false) report("a step that never succeeded passes");
}

/** Compares values that a workflow measured to the microsecond. */
function compareExact({ summary }: JourneyRan, report: Report): void {
  const step = summary.workflows.find(({ name }) => name === EXACT)?.steps[0];
  const count = step?.latencyMs.count ?? 0;
  if (step === undefined || count === 0) return;
  const values = EXACT_MS.slice(0, count);
  const near = (what: string, actual: number, expected: number, share: number): void => {
    if (Math.abs(actual - expected) > expected * share + 0.0011)
      report(`${what} of exact values is ${actual}, should be ${expected}`);
  };
  const mean = values.reduce((all, value) => all + value, 0) / count;
  near("mean", step.latencyMs.mean, mean, 0);
  for (const [percentile, fraction] of PERCENTILES) {
    const value = values[Math.max(1, Math.ceil(fraction * count)) - 1] ?? 0;
    near(percentile, step.latencyMs[percentile], value, CELL);
  }
  let seen = 0;
  for (const [at, upTo] of step.histogram.upToMs.entries()) {
    seen += step.histogram.count[at] ?? 0;
    // Each bound lies behind the whole microsecond that it includes.
    const expected = values.filter((value) => value < upTo + 0.0011).length;
    const atLeast = values.filter((value) => value < upTo - 0.0011).length;
    if (seen > expected || seen < atLeast)
      report(`${seen} exact values are up to ${upTo} ms, should be ${expected}`);
  }
}

const PERCENTILES = [
  ["p50", 0.5],
  ["p75", 0.75],
  ["p90", 0.9],
  ["p95", 0.95],
  ["p99", 0.99],
] as const;

class FlowComparison {
  readonly #ran: JourneyRan;
  readonly #journey: Journey;
  readonly #workflow: WorkflowSummary;
  readonly #report: Report;
  readonly #trails: readonly Trail[];
  readonly #log: readonly Logged[];
  readonly #byKey: ReadonlyMap<string, Logged>;
  readonly #load: Journey["loads"][number] | undefined;

  constructor(ran: JourneyRan, workflow: WorkflowSummary, report: Report) {
    this.#ran = ran;
    this.#journey = ran.journey;
    this.#workflow = workflow;
    this.#report = report;
    this.#trails = ran.trails.filter(({ flow }) => flow === workflow.name);
    this.#log = ran.target.log.filter((entry) => entry.workflow === workflow.name);
    this.#byKey = new Map(this.#log.map((entry) => [entry.key, entry]));
    const at = ran.journey.flows.findIndex(({ name }) => name === workflow.name);
    this.#load = ran.journey.loads[ran.journey.mixed ? 0 : at];
  }

  all(): void {
    for (const step of this.#workflow.steps) this.#step(step);
    const unknown = this.#log.find(
      ({ step }) => step !== SETUP && !this.#workflow.steps.some(({ name }) => name === step),
    );
    if (unknown !== undefined) this.#report(`the server knows ${unknown.step}, the results do not`);
    const setup = this.#workflow.aside?.find(({ name }) => name === SETUP);
    const asked = this.#log.filter(({ step }) => step === SETUP).length;
    this.#equal("calls of userSetup", setup?.sent ?? 0, asked);
    this.#required();
    const atOnce = sumOf(this.#trails.map(({ refusedAtOnce }) => refusedAtOnce));
    this.#equal("calls refused at once", atOnce, 0);
    if (this.#journey.warmupMs === 0) {
      this.#floating();
      this.#outcomes();
      this.#groups();
      this.#firstCalls();
    } else this.#warmup();
    this.#interrupted();
    this.#arrivals();
    this.#throttle();
    this.#rows();
    this.#begins();
  }

  #equal(what: string, actual: number, expected: number): void {
    if (actual !== expected) this.#report(`${what} is ${actual}, should be ${expected}`);
  }

  #between(what: string, actual: number, low: number, high: number): void {
    if (!(actual >= low && actual <= high))
      this.#report(`${what} is ${actual}, should be from ${low} to ${high}`);
  }

  #step(step: StepSummary): void {
    const log = this.#log.filter((entry) => entry.step === step.name);
    this.#equal(`${step.name} sent`, step.sent ?? 0, log.length);
    this.#equal(`${step.name} interrupted`, step.interrupted, 0);
    this.#equal(`${step.name} latencies`, step.latencyMs.count, step.requests);
    if (step.latencyMs.mean < step.serviceMs.mean - ROUNDING_MS)
      this.#report(`${step.name} has a latency below its service time`);
    if (this.#journey.warmupMs > 0) return;
    this.#equal(`${step.name} requests`, step.requests, log.length);
    this.#equal(`${step.name} ok`, step.ok, log.filter(({ status }) => status === 200).length);
    const seen = this.#trails
      .flatMap(({ calls }) => calls)
      .filter((call) => call.step === step.name && this.#byKey.has(call.key));
    const least = log.map(({ answeredAt, receivedAt }) => answeredAt - receivedAt);
    const most = seen.map(({ afterAt, beforeAt }) => afterAt - beforeAt);
    this.#sum(`${step.name} service times`, step.serviceMs, sumOf(least), sumOf(most));
    if (!this.#planned)
      this.#sum(`${step.name} latencies`, step.latencyMs, sumOf(least), sumOf(most));
  }

  /**
   * The first call of every iteration is due at its arrival, plus the pauses before it. How late each arrival began is
   * a separate metric, so no time of the plan needs to be known.
   */
  #firstCalls(): void {
    const { arrivals } = this.#workflow;
    const { deeds = [], userSetup } = this.#own ?? {};
    const first = deeds.find(({ kind }) => kind !== "pause");
    // How late an arrival began is known before its user is set up.
    if (first === undefined || arrivals === null || userSetup) return;
    const names =
      first.kind === "call" ? [first.name] : first.kind === "parallel" ? first.names : [];
    const before = deeds.slice(0, deeds.indexOf(first));
    const pausedMs = sumOf(before.map((deed) => (deed.kind === "pause" ? deed.ms : 0)));
    for (const step of this.#workflow.steps)
      if (names.includes(step.name))
        this.#firstCall(step, arrivals.sendLagMs, { pausedMs, pauses: before.length });
  }

  #firstCall(
    step: StepSummary,
    lag: Distribution,
    { pausedMs, pauses }: { readonly pausedMs: number; readonly pauses: number },
  ): void {
    const bounds = this.#trails.flatMap(({ beganAt, calls }) => {
      const call = calls.find((one) => one.step === step.name);
      const answeredAt = this.#byKey.get(call?.key ?? "")?.answeredAt;
      if (call === undefined || answeredAt === undefined) return [];
      const most = call.afterAt - beganAt + this.#ran.target.turnMs(beganAt);
      return [[answeredAt - beganAt - pausedMs, most - pausedMs + pauses * TIMER_EARLY_MS]];
    });
    // An arrival whose first call was cut off was late, too, by at most as much as the latest.
    const others = lag.count - bounds.length;
    if (step.requests !== bounds.length || others < 0) return;
    const late = lag.mean * lag.count;
    const least = Math.max(0, late - others * lag.max);
    const [low, high] = [
      sumOf(bounds.map(([one = 0]) => one)),
      sumOf(bounds.map(([, one = 0]) => one)),
    ];
    this.#sum(`latencies of first calls ${step.name}`, step.latencyMs, least + low, late + high);
  }

  /** NaN as an upper bound: an end was never received, and nothing can be checked. */
  #sum(what: string, { count, mean }: Distribution, low: number, high: number): void {
    const slack = count * ROUNDING_MS;
    const most = Number.isNaN(high) ? Number.POSITIVE_INFINITY : high + slack;
    this.#between(`sum of ${what}`, mean * count, low - slack, most);
  }

  /** The observed start of its plan: the flows of a mix have one plan. */
  get #beganAt(): number {
    const { journey, target } = this.#ran;
    const names = journey.mixed ? journey.flows.map(({ name }) => name) : [this.#workflow.name];
    return Math.min(...names.map((name) => target.began.get(name) ?? Number.POSITIVE_INFINITY));
  }

  /** Arrivals have a plan, from which their first calls and groups are measured. */
  get #planned(): boolean {
    return this.#load?.kind === "open";
  }

  /** A required call that failed ends its iteration, and nothing else does so in its name. */
  #required(): void {
    for (const { calls, outcome } of this.#trails) {
      const failed = calls.some(
        ({ key, required }) => required && this.#byKey.get(key)?.status === 500,
      );
      if (failed && outcome !== "ended") this.#report(`${outcome} after a required call failed`);
      const last = calls.findLast(({ required }) => required);
      const wrongly = outcome === "ended" && !failed && last !== undefined && this.#endsNever;
      if (wrongly) this.#report("ended by a required call that did not fail");
    }
  }

  /** Calls that were under way when their body ended are counted in a note of each core. */
  #floating(): void {
    const noted = this.#ran.notes.map((note) => {
      const count = /^"(\w+)": (\d+) calls were under way when the body/.exec(note);
      return count?.[1] === this.#workflow.name ? Number(count[2]) : 0;
    });
    const after = (moment: (call: Trail["calls"][number]) => number): number =>
      sumOf(
        this.#trails.map(
          ({ calls, endedAt }) => calls.filter((call) => moment(call) > endedAt).length,
        ),
      );
    const least = after(({ key }) => this.#byKey.get(key)?.answeredAt ?? 0);
    // The code behind a call that was cut off never ran.
    const most = after(({ afterAt, key }) => {
      if (!this.#byKey.has(key)) return 0;
      return Number.isNaN(afterAt) ? Number.POSITIVE_INFINITY : afterAt;
    });
    this.#between("calls that nobody awaited", sumOf(noted), least, most);
  }

  get #own(): JourneyFlow | undefined {
    return this.#journey.flows.find(({ name }) => name === this.#workflow.name);
  }

  /** Whether the body never ends an iteration by choice. */
  get #endsNever(): boolean {
    return !JSON.stringify(this.#own?.deeds ?? []).includes('"end"');
  }

  #outcomes(): void {
    const { checks, iterations } = this.#workflow;
    const count = (outcome: Trail["outcome"]): number =>
      this.#trails.filter((trail) => trail.outcome === outcome).length;
    for (const outcome of ["completed", "ended", "failed"] as const)
      this.#equal(`iterations ${outcome}`, iterations[outcome] ?? 0, count(outcome));
    this.#begun("iterations interrupted", iterations.interrupted, count("interrupted"));
    const arrived = this.#trails.filter((trail) => trail.arrived).length;
    this.#equal("checks", checks[0]?.passed ?? 0, arrived);
    this.#equal("completed durations", iterations.okDurationMs?.count ?? 0, count("completed"));
    const { durationMs } = iterations;
    if (durationMs === undefined) return;
    const over = this.#trails.filter(({ outcome }) => outcome !== "interrupted");
    this.#equal("durations", durationMs.count, over.length);
    if (this.#planned || durationMs.count !== over.length) return;
    const low = over.map((trail) => this.#lastEnd(trail) - trail.beganAt);
    // An iteration begins in the turn of the loop in which its body does.
    const high = over.map(
      (trail) =>
        this.#lastHeard(trail) -
        trail.beganAt +
        this.#ran.target.apartMs(trail.beganAt, trail.beganAt),
    );
    this.#sum("durations", durationMs, sumOf(low), sumOf(high));
  }

  /** An iteration whose user was still being set up at the end has begun without its body. */
  #begun(what: string, actual: number, bodies: number): void {
    const most = this.#own?.userSetup ? Number.POSITIVE_INFINITY : bodies;
    this.#between(what, actual, bodies, most);
  }

  /** The server's answer to its last call, or the end of its body. */
  #lastEnd({ calls, endedAt }: Trail): number {
    return Math.max(endedAt, ...calls.map(({ key }) => this.#byKey.get(key)?.answeredAt ?? 0));
  }

  #lastHeard({ calls, endedAt }: Trail): number {
    const sent = calls.filter(({ key }) => this.#byKey.has(key));
    return Math.max(endedAt, ...sent.map(({ afterAt }) => afterAt));
  }

  #groups(): void {
    const all = this.#trails.flatMap(({ calls, groups }) =>
      groups.map((group) => ({
        group,
        calls: calls.filter((call) => call.groups.includes(group)),
      })),
    );
    const paths = new Set(all.map(({ group }) => group.path));
    for (const path of paths) {
      const over = all.filter(({ group }) => group.path === path && group.came !== "cut off");
      const summary = this.#workflow.groups?.find(({ name }) => name === path);
      const failed = over.filter(
        ({ calls, group }) =>
          group.came !== "returned" ||
          calls.some(({ key }) => this.#byKey.get(key)?.status === 500),
      );
      this.#equal(`group ${path} failed`, summary?.failed ?? 0, failed.length);
      this.#equal(`group ${path} ok`, summary?.ok ?? 0, over.length - failed.length);
      if (summary === undefined || this.#planned) continue;
      const bounds = over.map(({ calls, group }) => this.#groupBounds(group, calls));
      const [low, high] = [sumOf(bounds.map(([one]) => one)), sumOf(bounds.map(([, one]) => one))];
      this.#sum(`durations of group ${path}`, summary.durationMs, low, high);
      // Pauses of groups side by side inside it may overlap: what they leave is not known.
      if (this.#sideBySide(path)) continue;
      const paused = sumOf(over.map(({ group }) => group.pausedMs));
      const early = sumOf(over.map(({ group }) => group.pauses)) * TIMER_EARLY_MS;
      this.#sum(`active of group ${path}`, summary.activeMs, low - paused, high - paused + early);
    }
  }

  #sideBySide(path: string): boolean {
    const within = (deeds: readonly Deed[], inside: boolean): boolean =>
      deeds.some((deed) => {
        if (deed.kind === "together")
          return inside || deed.groups.some((one) => within([one], false));
        if (deed.kind !== "group") return false;
        return within(deed.deeds, inside || path.split("/").at(-1) === deed.name);
      });
    return within(this.#own?.deeds ?? [], false);
  }

  /** A group lasts until its body and every call that began in it have ended. */
  #groupBounds(group: TrailGroup, calls: Trail["calls"]): [number, number] {
    const sent = calls.filter(({ key }) => this.#byKey.has(key));
    const answered = sent.map(({ key }) => this.#byKey.get(key)?.answeredAt ?? 0);
    const heard = sent.map(({ afterAt }) => afterAt);
    return [
      Math.max(group.bodyDoneAt, ...answered) - group.insideAt,
      Math.max(group.afterAt, ...heard) - group.beforeAt,
    ];
  }

  /** Calls of users without a plan of arrivals are due when they begin. */
  #warmup(): void {
    if (this.#load?.kind !== "closed") return;
    const from = this.#beganAt + this.#journey.warmupMs;
    const apart = this.#ran.target.apartMs();
    const calls = this.#trails.flatMap(({ calls }) => calls);
    for (const { name, requests } of this.#workflow.steps) {
      const since = (moment: number): number =>
        calls.filter(
          ({ beforeAt, key, step }) => step === name && this.#byKey.has(key) && beforeAt >= moment,
        ).length;
      this.#between(
        `${name} requests after the warm-up`,
        requests,
        since(from),
        since(from - apart),
      );
    }
  }

  /** Only the end of the plan cuts an iteration off. */
  #interrupted(): void {
    const load = this.#load;
    if (!whole(this.#ran) || load === undefined) return;
    const cut = this.#trails.filter(({ outcome }) => outcome === "interrupted");
    if (load.kind === "shared" || load.kind === "perUser") {
      if (cut.length > 0) this.#report(`${cut.length} were cut off without an end of the plan`);
      const planned = load.iterations * (load.kind === "perUser" ? load.vus : 1);
      if (this.#journey.mixed) return;
      const rows = this.#own?.rows === "few" ? ROWS_FEW : Number.POSITIVE_INFINITY;
      const expected = Math.min(planned, rows);
      // A core may end with rows that it has taken and no iteration needs.
      const least = rows < planned && this.#journey.cores > 1 ? 1 : expected;
      this.#between("iterations begun", this.#trails.length, least, expected);
      return;
    }
    if (load.kind !== "closed" && load.kind !== "open") return;
    // The first of random arrivals comes some time after the plan began.
    const random = load.kind === "open" && load.poisson;
    const beganAt = random ? this.#ran.startedAt : this.#beganAt;
    const end = beganAt + this.#journey.warmupMs + load.durationMs;
    const apart = this.#ran.target.apartMs();
    if (cut.some(({ endedAt }) => endedAt < end - apart)) this.#report("cut off before the end");
  }

  #arrivals(): void {
    const { arrivals } = this.#workflow;
    const load = this.#load;
    if (load?.kind !== "open" || arrivals === null) return;
    if (this.#journey.warmupMs > 0) return;
    this.#begun("arrivals started", arrivals.started, this.#trails.length);
    if (!whole(this.#ran) || this.#journey.mixed) return;
    const planned = arrivalsOf(load);
    const all = arrivals.started + arrivals.missed;
    if (load.poisson) {
      const spread = 6 * Math.sqrt(planned);
      this.#between("arrivals", all, planned - spread, planned + spread);
    } else this.#equal("arrivals", all, planned);
  }

  /** In any stretch of time no more begin than the throttle lets through, and one per core. */
  #throttle(): void {
    const load = this.#load;
    if (load?.kind !== "closed" || load.maxRate === null) return;
    const apart = this.#ran.target.apartMs();
    for (const [at, trail] of this.#trails.entries()) {
      const most =
        ((trail.beganAt - this.#beganAt + apart) * load.maxRate) / 1_000 + this.#journey.cores;
      if (at + 1 > most + 1e-6) {
        this.#report(`${at + 1} began where the throttle lets ${most} through`);
        return;
      }
    }
  }

  /** A row of a user is its own in all iterations; a row of order "once" is used once. */
  #rows(): void {
    const own = this.#own;
    if (own === undefined || own.rows === "none") return;
    const users = new Map<number, number | null>();
    for (const { row, user } of this.#trails) {
      if (row === null) this.#report("an iteration had no row");
      if (own.rows === "user" && (users.get(user) ?? row) !== row)
        this.#report(`user ${user} had rows ${users.get(user)} and ${row}`);
      users.set(user, row);
    }
    const rows = own.rows === "user" ? [...users.values()] : this.#trails.map(({ row }) => row);
    if (new Set(rows).size !== rows.length) this.#report(`a row of ${own.rows} was used twice`);
  }

  /** `startAfter` counts from the start of its layer, which is after the start of the run. */
  #begins(): void {
    const second = !this.#journey.mixed && this.#workflow.name === this.#journey.flows[1]?.name;
    const [first] = this.#trails;
    if (!second || first === undefined) return;
    if (first.beganAt < this.#ran.startedAt + this.#journey.startAfterMs)
      this.#report("it began before its time");
  }
}

function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}
