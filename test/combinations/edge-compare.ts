/** Compares every metric of an edge case with the server's log and the records of its bodies. */

import type { WorkflowSummary } from "../../src/core/load/results/model.ts";
import { NAMES_MAX, OTHER_NAME, UNNAMED_MAX } from "../../src/core/load/stats/names.ts";
import { EDGE_DURATION_MS } from "./edge-grammar.ts";
import { type EdgeRan, type EdgeTrail, ordersThreshold } from "./edge-run.ts";
import { arrivalsOf } from "./grammar.ts";
import type { Logged } from "./target.ts";

/** Timers that are later than this are late, and each counts for so much time. */
const LATE_MS = 50;
const LAG_INTERVAL_MS = 10;

/** Differences as texts; none when every metric is right. */
export function edgeDifferences(ran: EdgeRan): string[] {
  const found: string[] = [];
  const report = (text: string): void => void found.push(text);
  const names = ran.edge.mixed ? ["f0", "f1"] : ["f0"];
  const flows = names.map((name) => new EdgeFlow(ran, name, report));
  if (ran.edge.load.kind === "search") {
    for (const one of flows) one.compareSearch();
    return found;
  }
  if (ran.edge.losesAtMs !== null) {
    for (const one of flows) one.comparePlan();
    return found;
  }
  for (const one of flows) one.all();
  compareArrivals(ran, report);
  compareRows(ran, report);
  compareStops(ran, report);
  return found;
}

type Report = (text: string) => void;

/** Due is begun and missed, over all flows of a load. */
function compareArrivals({ edge, summary }: EdgeRan, report: Report): void {
  const { load } = edge;
  if (load.kind !== "open") return;
  const planned = arrivalsOf({ ...load, peak: null, durationMs: EDGE_DURATION_MS });
  const all = summary.workflows.reduce(
    (sum, { arrivals }) => sum + (arrivals?.started ?? 0) + (arrivals?.missed ?? 0),
    0,
  );
  if (all !== planned) report(`arrivals begun and missed are ${all}, due were ${planned}`);
}

/** Rows that may repeat cost no message; each order gives what it says. */
function compareRows({ edge, rowsAsked, trails }: EdgeRan, report: Report): void {
  const { rows } = edge;
  if (rows === "none") return;
  if (trails.some(({ row }) => row === null)) report("an iteration had no row");
  if (rows !== "once" && rowsAsked > 0)
    report(`${rowsAsked} times rows were asked for that repeat`);
  for (const flow of new Set(trails.map((one) => one.flow))) {
    const own = trails.filter((one) => one.flow === flow);
    if (rows === "once" && new Set(own.map(({ row }) => row)).size < own.length)
      report(`${flow}: a row was used twice`);
    if (rows === "four per user") comparePerUser(own, report);
    const counts = [0, 1, 2, 3].map((row) => own.filter((one) => one.row === row).length);
    if (rows === "four" && edge.cores === 1 && Math.max(...counts) - Math.min(...counts) > 1)
      report(`${flow}: rows in order were used ${counts.join(", ")} times`);
  }
}

function comparePerUser(trails: readonly EdgeTrail[], report: Report): void {
  const rows = new Map<number, number | null>();
  for (const { row, user } of trails) {
    if ((rows.get(user) ?? row) !== row) report(`user ${user} had more than one row`);
    rows.set(user, row);
  }
}

/** A loop that was blocked for a time was late for about that share of all time. */
function compareStops({ edge, run, trails }: EdgeRan, report: Report): void {
  for (let core = 0; core < edge.cores; core++) {
    const blocked = trails.filter((one) => one.core === core && one.blockedMs > 0);
    if (blocked.length === 0) continue;
    const least = blocked.reduce((sum, one) => sum + one.blockedMs - LATE_MS, 0) / LAG_INTERVAL_MS;
    const late = [...run.workflows.values()].reduce((sum, workflow) => {
      const lag = workflow.lagOf("loopLag", core);
      return sum + lag.count - lag.countAtOrBelow(LATE_MS * 1_000);
    }, 0);
    // The timer that comes first after a stop was due up to one interval after its begin.
    if (late < least - 2 * blocked.length)
      report(`core ${core} has ${late} late samples, its own code blocked it for ${least}`);
  }
}

class EdgeFlow {
  readonly #ran: EdgeRan;
  readonly #name: string;
  readonly #workflow: WorkflowSummary | undefined;
  readonly #log: readonly Logged[];
  readonly #trails: readonly EdgeTrail[];
  readonly #report: Report;

  constructor(ran: EdgeRan, name: string, report: Report) {
    this.#ran = ran;
    this.#name = name;
    this.#workflow = ran.summary.workflows.find((one) => one.name === name);
    this.#log = ran.target.log.filter((entry) => entry.workflow === name);
    this.#trails = ran.trails.filter((one) => one.flow === name);
    this.#report = (text) => report(`${name}: ${text}`);
  }

  all(): void {
    if (this.#workflow === undefined) {
      this.#report("has no results");
      return;
    }
    this.#rows(this.#workflow);
    this.#iterations(this.#workflow);
    this.#unanswered(this.#workflow);
    this.#metrics();
  }

  #equal(what: string, actual: number, expected: number): void {
    if (actual !== expected) this.#report(`${what} is ${actual}, should be ${expected}`);
  }

  /** A row has all calls of its name; names without a row are in "(other)". */
  #rows({ steps, totals }: WorkflowSummary): void {
    const sent = new Map<string, number>();
    for (const { step } of this.#log) sent.set(step, (sent.get(step) ?? 0) + 1);
    this.#equal("sent in all", totals?.sent ?? 0, this.#log.length);
    for (const step of steps) {
      this.#equal(
        `${step.name} finished and cut off`,
        step.requests + step.interrupted,
        step.sent ?? 0,
      );
      const key = /n\d+/.exec(step.name)?.[0];
      if (key !== undefined) this.#equal(`${step.name} sent`, step.sent ?? 0, sent.get(key) ?? 0);
    }
    const other = steps.find(({ name }) => name === OTHER_NAME);
    if (!this.#isBeyond(sent.size)) {
      this.#equal("steps", steps.length, sent.size);
      return;
    }
    if (other === undefined) this.#report(`${sent.size} names, and no ${OTHER_NAME}`);
    const remark = this.#ran.summary.reasons.find((text) => text.includes(OTHER_NAME));
    if (remark === undefined) this.#report(`no reason says that there is ${OTHER_NAME}`);
  }

  /** A core, or all of them together, came to more names than are kept. */
  #isBeyond(names: number): boolean {
    const { cores, names: drawn } = this.#ran.edge;
    const limit = drawn.kind === "unnamed" ? UNNAMED_MAX : NAMES_MAX;
    const most = Array.from({ length: cores }, (_, core) => {
      const own = this.#trails.filter((one) => one.core === core);
      return new Set(own.flatMap(({ called }) => called)).size;
    });
    return names > NAMES_MAX || Math.max(...most) > limit;
  }

  #iterations({ iterations }: WorkflowSummary): void {
    const { completed, durationMs, interrupted } = iterations;
    const done = this.#trails.filter((one) => one.completed).length;
    this.#equal("iterations completed", completed, done);
    this.#equal("iterations cut off", interrupted, this.#trails.length - done);
    this.#equal("durations", durationMs?.count ?? 0, done);
    const gate = this.#gate("iterations.count >= 1");
    const passed = gate?.passed ?? true;
    if (passed !== (done > 0 || this.#trails.length === 0))
      this.#report(
        `${done} of ${this.#trails.length} iterations ended, and the gate says ${passed}`,
      );
  }

  /** A request that the server never answered is counted as a failure, or was younger than usual. */
  #unanswered({ steps }: WorkflowSummary): void {
    const never = this.#log.filter(({ answeredAt }) => Number.isNaN(answeredAt)).length;
    const [unanswered, interrupted, requests] = [
      steps.reduce((sum, step) => sum + (step.errors["unanswered"] ?? 0), 0),
      steps.reduce((sum, step) => sum + step.interrupted, 0),
      steps.reduce((sum, step) => sum + step.requests, 0),
    ];
    if (unanswered + interrupted < never)
      this.#report(`${unanswered + interrupted} were cut off, ${never} never answered`);
    if (unanswered > 0.01 * requests && this.#gate("unanswered.rate")?.passed !== false)
      this.#report(`${unanswered} of ${requests} were never answered, and the run passes`);
  }

  #gate(expression: string) {
    return this.#ran.summary.thresholds.find(
      (one) => one.workflow === this.#name && one.expression.startsWith(expression),
    );
  }

  /** Values belong to the flow that added them, to the end of its graceful stop. */
  #metrics(): void {
    const expression = ordersThreshold(this.#name);
    const outcome = this.#ran.summary.thresholds.find((one) => one.expression === expression);
    if (outcome === undefined) return;
    const added = this.#trails.reduce((sum, { orders }) => sum + orders, 0);
    this.#equal("orders", outcome.actual ?? 0, added);
  }

  /** "Planned" is the plan, regardless of lost nodes. */
  comparePlan(): void {
    const { load } = this.#ran.edge;
    const planned = load.kind === "open" ? load.rate : load.kind === "closed" ? load.vus : 0;
    const { atSeconds = [], target = [], windowMs = 0 } = this.#workflow?.loadSeries ?? {};
    const from = this.#workflow?.startedAtSeconds ?? 0;
    for (const [at, one] of target.entries()) {
      const endsMs = ((atSeconds[at] ?? 0) - from) * 1_000 + windowMs;
      if (endsMs <= EDGE_DURATION_MS && Math.abs(one - planned) > 0.01 * planned)
        this.#report(`planned in window ${at} is ${one}, should be ${planned}`);
    }
  }

  /** No load is judged while calls of one that broke are still in the target. */
  compareSearch(): void {
    const { breakpoint } = this.#workflow ?? {};
    const beganAt = this.#ran.target.began.get(this.#name) ?? 0;
    const edge = this.#ran.target.apartMs();
    const probes = breakpoint?.probes ?? [];
    for (const [at, probe] of probes.entries()) {
      const next = probes[at + 1];
      if (probe.held || next === undefined) continue;
      const over = beganAt + probe.toSeconds * 1_000 - edge;
      const judgedFrom = beganAt + next.fromSeconds * 1_000;
      const late = this.#log.filter(
        ({ answeredAt, receivedAt }) => receivedAt < over && answeredAt > judgedFrom + edge,
      );
      if (late.length > 0)
        this.#report(
          `${late.length} calls of ${probe.load}/s are in the target while ${next.load}/s is judged`,
        );
    }
    if (breakpoint?.decided !== true) this.#report("the search did not come to its end");
  }
}
