/**
 * Entries committed by managers, as the first of them folds each in. Some invariants of a job are visible only here.
 *
 *   T2   an attempt has a token of its own and is closed once; a core runs one at a time
 *   T7   a workflow begins after the end of those whose values it uses is committed
 *   T9   the log of a job passes from one leader to the next, and never back
 *   T13  the group of a job is founded once in its datacenter
 *   T14  a job asks a datacenter only after those before it have granted cores
 *   P4   no job is timed out at a check that an earlier extension covers
 */

import { DatacenterState } from "../../src/core/cluster/manager/datacenter-state.ts";
import { attemptsOf } from "../../src/core/cluster/manager/job-history.ts";
import { decodeRunEntry } from "../../src/core/cluster/manager/run-entries.ts";
import { RUN_PREFIX, RunState } from "../../src/core/cluster/manager/run-state.ts";
import { MANAGER_DEFAULTS } from "../../src/core/cluster/manager/types.ts";
import type { ProcessEffect } from "../../src/core/cluster/node/types.ts";
import type { Group } from "../../src/core/ledger/node/group.ts";
import type { LedgerProcess } from "../ledger/node.ts";
import type { Violations } from "../membership/checkers/violations.ts";

type Applied = Extract<ProcessEffect, { kind: "applied" }>;

/** A gate's job in its datacenters, in the order in which they are asked. */
export interface AskedPlaces {
  readonly job: string;
  readonly keys: readonly string[];
}

const NOTHING_GIVEN = { seq: -1, ms: 0, at: Number.NEGATIVE_INFINITY };
const STUCK_MS = MANAGER_DEFAULTS.timeouts.stuckMs;

export class Committed {
  readonly marks = new Set<string>();
  readonly #violations: Violations;
  /** Datacenters remember few finished jobs. */
  readonly #forgets: boolean;
  /** Open jobs at each manager process, and jobs that have finished anywhere. */
  readonly #open = new Map<string, readonly { readonly job: string; readonly key: string }[]>();
  readonly #ended = new Set<string>();
  readonly #endedKeys = new Set<string>();
  /** How attempts were closed, by job, core and token. */
  readonly #closed = new Map<string, string>();
  /** Finished workflows, by job. */
  readonly #reported = new Set<string>();
  /** The view of the last adoption of a job, at each manager. */
  readonly #adopted = new Map<string, number>();
  /** Members of the groups of jobs. */
  readonly #members = new Map<string, string>();
  /** Jobs of datacenters by key: whether they have had cores. */
  readonly #granted = new Map<string, boolean>();
  /** Extensions for each job and the time of the last, in the order of its log. */
  readonly #extended = new Map<string, { seq: number; ms: number; at: number }>();

  constructor(violations: Violations, forgets = false) {
    this.#violations = violations;
    this.#forgets = forgets;
  }

  onApplied(process: LedgerProcess, { entry, group, outcome }: Applied): void {
    const app = process.node?.groups.get(group)?.app;
    const state = app?.kind === "registered" ? app.application : null;
    if (state instanceof DatacenterState) this.#onDatacenter(process, state);
    if (!(state instanceof RunState)) return;
    const job = group.slice(group.indexOf("/") + 1);
    this.#onAttempts(job, state);
    this.#onAdopted(process, job, state);
    const run = entry.kind === "op" && outcome !== "rejected" ? decodeRunEntry(entry.data) : null;
    if (run?.kind === "step" && run.step.kind === "report")
      this.#reported.add(`${job} ${run.step.workflow}`);
    if (run?.kind === "timeouts" && run.change.kind === "extended")
      this.#onExtended(job, state, entry.seq, run.change.ms);
    if (run?.kind === "control" && run.control.kind === "timeOut")
      this.#onTimedOut(job, state, entry.seq, run.control.reason);
  }

  #onExtended(job: string, { at, limit }: RunState, seq: number, ms: number): void {
    const known = this.#extended.get(job) ?? { seq: -1, ms: 0, at: 0 };
    // Every manager folds it in; only the first counts.
    if (seq <= known.seq) return;
    this.marks.add("job.extended");
    const most = limit.timeoutMs ?? Number.POSITIVE_INFINITY;
    this.#extended.set(job, { seq, ms: Math.min(most, known.ms + ms), at });
  }

  #onTimedOut(job: string, { at, limit }: RunState, seq: number, reason: string): void {
    const { ms, seq: extendedSeq, at: extendedAt } = this.#extended.get(job) ?? NOTHING_GIVEN;
    if (extendedSeq > seq) return;
    this.marks.add("job.timedOut");
    const { timeoutMs, waitedMs } = limit;
    const isOverall = reason.includes("it took longer");
    const inTimeUntil = isOverall ? (timeoutMs ?? 0) + ms - waitedMs : extendedAt + STUCK_MS;
    const isCovered = ms > 0 && at <= inTimeUntil;
    this.#violations.check(!isCovered, "P4", () => {
      return `${job} is timed out at ${at} ms (${reason}), and may take until ${inTimeUntil} ms`;
    });
  }

  /** Every job is seen while it is open, because an entry of its own submits it. */
  #onDatacenter({ id, life }: LedgerProcess, { open }: DatacenterState): void {
    // A restarted manager folds in entries from before the ones it had known.
    const manager = `${id} in its life ${life}`;
    for (const { job, key } of this.#open.get(manager) ?? []) {
      if (open.has(job)) continue;
      this.#ended.add(job);
      this.#endedKeys.add(key);
    }
    this.#open.set(manager, [...open.values()]);
    for (const { grants, job, key, members, phase } of open.values()) {
      this.#granted.set(key, this.#granted.get(key) === true || grants.length > 0);
      if (phase !== "admitted") continue;
      const known = this.#members.get(job);
      const now = members.join(",");
      this.#violations.check(known === undefined || known === now, "T13", () => {
        return `the group of ${job} is founded with ${known} and with ${now}`;
      });
      this.#members.set(job, now);
    }
  }

  #onAdopted({ id, life }: LedgerProcess, job: string, { view }: RunState): void {
    const place = `${job} at ${id} in its life ${life}`;
    const known = this.#adopted.get(place) ?? 0;
    this.#violations.check(view >= known, "T9", () => {
      return `${place}: view ${view}, which was deposed, has it after ${known}`;
    });
    this.#adopted.set(place, view);
  }

  #onAttempts(job: string, run: RunState): void {
    const tokens = new Set<string>();
    const running = new Set<number>();
    for (const { core, status, token } of attemptsOf(run)) {
      const name = `${job} core ${core} token ${token}`;
      this.#violations.check(!tokens.has(name), "T2", () => `${name} is two attempts`);
      tokens.add(name);
      if (status === "running") {
        this.#violations.check(!running.has(core), "T2", () => {
          return `core ${core} of ${job} has two attempts under way`;
        });
        running.add(core);
        continue;
      }
      const known = this.#closed.get(name) ?? status;
      this.#violations.check(known === status, "T2", () => `${name} is ${known} and ${status}`);
      this.#closed.set(name, status);
    }
  }

  /** Checks a command to a core to begin a workflow that uses values of others. */
  onUsed(job: string, workflow: string, from: readonly string[]): void {
    for (const one of from)
      this.#violations.check(this.#reported.has(`${job} ${one}`), "T7", () => {
        return `${workflow} of ${job} begins, and the end of ${one} is not committed`;
      });
  }

  /** True when a manager that does not know the job may have forgotten it. */
  mayBeForgotten(job: string): boolean {
    if (this.#forgets && this.#ended.has(job)) this.marks.add("job.forgotten");
    return this.#forgets && this.#ended.has(job);
  }

  /** True when a repeated submission may begin another job: the datacenter keeps few finished ones. */
  mayBeginAnew(key: string): boolean {
    if (this.#forgets && this.#endedKeys.has(key)) this.marks.add("key.forgotten");
    return this.#forgets && this.#endedKeys.has(key);
  }

  /** Checks a gate's requests to its datacenters. */
  onAsked({ job, keys }: AskedPlaces): void {
    keys.forEach((key, at) => {
      const early = keys.slice(at + 1).find((later) => this.#granted.has(later));
      this.#violations.check(this.#granted.get(key) === true || early === undefined, "T14", () => {
        return `${job} has asked ${early} before it had cores as ${key}`;
      });
    });
  }

  /** Runs when everything is over. */
  judge(processes: readonly LedgerProcess[]): void {
    for (const { id, node } of processes) {
      this.#judgeForgotten(id, [...(node?.groups.values() ?? [])]);
      for (const [group, { app }] of node?.groups ?? []) {
        const state = app.kind === "registered" ? app.application : null;
        if (!(state instanceof RunState) || state.end?.status !== "COMPLETED") continue;
        const open = state.attempts.filter(({ status }) => status === "running");
        this.#violations.check(open.length === 0, "T2", () => {
          return `${group} is over, and ${open.length} of its attempts are not closed`;
        });
      }
    }
  }

  /** T12: the group of a job forgotten by its datacenter is removed. */
  #judgeForgotten(manager: string, groups: readonly Group[]): void {
    const states = groups.map(({ app }) => (app.kind === "registered" ? app.application : null));
    const known = states.find((state) => state instanceof DatacenterState)?.jobs;
    const runs = groups.flatMap(({ id }) =>
      id.startsWith(RUN_PREFIX) ? [id.slice(RUN_PREFIX.length)] : [],
    );
    const kept = runs.filter((job) => known?.has(job) !== true);
    this.#violations.check(kept.length === 0, "T12", () => {
      return `${manager} has groups of jobs that are forgotten: ${kept.join(", ")}`;
    });
    if (this.#forgets && known !== undefined && this.#ended.size > known.size)
      this.marks.add("group.forgotten");
  }
}
