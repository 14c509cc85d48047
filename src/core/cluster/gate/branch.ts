/**
 * The part of a job in one datacenter, as seen by the gate that leads the job. It is submitted under a key of its
 * own, so that the next leader of the job finds the same one. Then it is polled, and controlled
 * until it does what is wanted. One request is in flight at a time.
 *
 *     submit ─▶ (files) ─▶ observe, observe … ─▶ ended ─▶ its result is fetched
 *                             └─ start, pause, resume, scale, cancel: until they are observed
 */

import type { ToldRun } from "../../load/execution/told-run.ts";
import type { HeldFigures, LiveWanted, Observed } from "../gate-messages.ts";
import { decodeTold } from "../manager/run-result.ts";
import {
  ANYWHERE,
  type Control,
  ENDED_STATUSES,
  type JobStatus,
  type Refusal,
  type RefusalReason,
  type Submission,
} from "../messages.ts";
import { backpressureLevel, delayMs } from "../overload/backpressure.ts";
import type { DatacenterClock } from "../overload/joint-timeout.ts";
import type { GateContext } from "./context.ts";
import { download } from "./download.ts";
import type { JointControl } from "./joint-words.ts";
import type { ManagerAnswer, ManagerMessage } from "./types.ts";
import { FILES_ABSENT, upload } from "./upload.ts";

/** Delay after an answer that decides nothing. */
const PAUSE_MS = 200;
/** Poll interval of a queued job, as a share of the time it has been queued: thousands of jobs may be queued. */
const WAITED_SHARE = 0.1;
/** Upper limit of that interval: cores assigned to the job idle until the gate observes them. */
const WAITING_PAUSE_MS_MAX = 500;
/** Hindrances shorter than this, such as an election, are not reported. */
const HINDERED_MS = 3_000;
/** Minimum interval of the call rate. */
const RATE_MS = 1_000;
/** Refusals that a retry does not change. */
const FINAL: readonly RefusalReason[] = ["invalid", "keyReused"];

/** Wanted state of the job in the datacenter. */
export interface Wanted {
  /** Wall-clock milliseconds; null if not started yet. */
  readonly startAtMs: number | null;
  readonly paused: boolean;
  /** Scale factor of the plan. */
  readonly factor: number;
  /** Reason to cancel; null to keep running. */
  readonly cancel: string | null;
  /** Live metrics that clients are watching. */
  readonly live: LiveWanted;
  /** Reason to time out; null for none. */
  readonly timeOut: string | null;
  /** Workflows that start or end in all datacenters. */
  readonly joint: readonly JointControl[];
}

/** Wanted state of a part that is no longer needed. */
export const UNWANTED: Wanted = {
  ...{ startAtMs: null, paused: false, factor: 1, cancel: null, timeOut: null },
  ...{ live: "none", joint: [] },
};

interface BranchPorts {
  /** Frames that are already merged; null if metrics are not wanted. */
  held(): HeldFigures | null;
  /** The datacenter reported metrics, with the view of its leader. */
  onReport(report: ToldRun, view: number): void;
  /** The state of the branch has changed. */
  onNews(): void;
  /** Whether this gate still leads the job. */
  isLed(): boolean;
  onLine(line: string): void;
}

export class Branch {
  readonly datacenter: string;
  readonly key: string;
  /** Id of the job in the datacenter; empty until known. */
  job = "";
  /** First submission by this gate, or the attempt of it; another gate may have submitted earlier. Null if none. */
  #askedAt: number | null = null;
  observed: Observed | null = null;
  /** Call rate over about the last second. */
  ratePerSecond = 0;
  /** Last reported metrics and waits. */
  report: ToldRun | null = null;
  /** Time of the last answer; null if there is none. */
  lastSeenAt: number | null = null;
  /** When the job was first observed queued; null if it is not queued. */
  queuedAt: number | null = null;
  /** Reason why the job can never run in this datacenter. */
  problem: string | null = null;
  /** Reason why the job is not running there yet. */
  #hindrance: { readonly text: string; readonly since: number } | null = null;
  /** Result of the job, or null if it left none; undefined before it is fetched. */
  result: Uint8Array | null | undefined;
  readonly #beganAt: number;
  readonly #context: GateContext;
  readonly #submission: Submission;
  readonly #ports: BranchPorts;
  #wanted: Wanted;
  #manager: string | null = null;
  #isBusy = false;
  /** Observed since the last control was sent. */
  #isFresh = false;
  #askAt: number;
  #line = 0;
  /** The datacenter has reported the job as overdue. */
  #isLate = false;
  #counted: { readonly at: number; readonly requests: number };

  constructor(
    context: GateContext,
    place: { readonly datacenter: string; readonly key: string },
    submission: Submission,
    wanted: Wanted,
    ports: BranchPorts,
  ) {
    this.datacenter = place.datacenter;
    this.key = place.key;
    this.#context = context;
    this.#submission = submission;
    this.#wanted = wanted;
    this.#ports = ports;
    this.#beganAt = context.now;
    this.#askAt = context.now;
    this.#counted = { at: context.now, requests: 0 };
  }

  get status(): JobStatus {
    return this.observed?.status ?? "QUEUED";
  }

  get hasEnded(): boolean {
    return ENDED_STATUSES.includes(this.status);
  }

  /** The job has finished and its result is here, or it can never run. */
  get isOver(): boolean {
    return this.problem !== null || (this.hasEnded && this.result !== undefined);
  }

  /** Time since the last answer. */
  silentMs(now: number): number {
    return now - (this.lastSeenAt ?? this.#beganAt);
  }

  /** Time since the last answer or the first submission; a branch that waits for its turn counts as answered. */
  unansweredMs(now: number): number {
    return now - (this.lastSeenAt ?? this.#askedAt ?? now);
  }

  get wasAsked(): boolean {
    return this.#askedAt !== null;
  }

  /** Time budget of the job in this datacenter, as last reported. */
  clock(now: number): DatacenterClock {
    const clock = this.observed?.clock ?? null;
    const isOver = this.hasEnded || this.problem !== null;
    return {
      datacenter: this.datacenter,
      ended: isOver ? (this.status === "TIMED_OUT" ? "timedOut" : "otherwise") : "no",
      idleMs: this.silentMs(now) + (clock?.idleMs ?? 0),
      extendedMs: clock?.extendedMs ?? 0,
      extended: clock?.extended ?? 0,
      overdue: clock?.overdue ?? null,
    };
  }

  want(wanted: Wanted): void {
    const { cancel, timeOut } = this.#wanted;
    // A cancel or timeout does not wait for the next poll.
    if (cancel !== wanted.cancel || timeOut !== wanted.timeOut)
      this.#askAt = Math.min(this.#askAt, this.#context.now);
    this.#wanted = wanted;
  }

  nextDeadline(): number {
    return this.#isBusy || this.isOver ? Number.POSITIVE_INFINITY : this.#askAt;
  }

  step(): void {
    if (this.#isBusy || this.isOver || this.#context.now < this.#askAt) return;
    if (this.hasEnded) {
      this.#fetchResult();
      return;
    }
    if (this.job === "") this.#submit();
    else this.#follow();
  }

  get hindrance(): string | null {
    const { since, text } = this.#hindrance ?? { since: Number.POSITIVE_INFINITY, text: null };
    return this.#context.now - since >= HINDERED_MS ? text : null;
  }

  #hindered(text: string | null): void {
    const since = this.#hindrance?.since ?? this.#context.now;
    this.#hindrance = text === null ? null : { text, since };
  }

  /** Sends when the circuit to the datacenter permits, if this gate still leads the job then. */
  #control(message: ManagerMessage, then: (answer: ManagerAnswer, from: string) => void): void {
    this.#ask(message, () => this.#ports.isLed(), then);
  }

  #ask(
    message: ManagerMessage,
    isWanted: (() => boolean) | null,
    then: (answer: ManagerAnswer, from: string) => void,
  ): void {
    this.#isBusy = true;
    const { datacenter } = this;
    const call = { datacenter, manager: this.#manager, message };
    this.#context.ask(isWanted === null ? call : { ...call, isWanted }, (answer, from) => {
      this.#isBusy = false;
      this.#askAt = this.#context.now + PAUSE_MS;
      if (answer === null || from === null) {
        this.#manager = null;
        const hindrance = this.#context.calls.hindrance(datacenter);
        if (hindrance !== null) this.#hindered(hindrance);
      } else if (answer.kind === "refused") this.#onRefused(answer);
      else then(answer, from);
      this.#ports.onNews();
    });
  }

  #onRefused({ message, reason, retryAfterMs }: Refusal): void {
    if (reason === "notLeader") {
      this.#manager = message;
      this.#askAt = this.#context.now + PAUSE_MS / 4;
      return;
    }
    if (FINAL.includes(reason) && this.job === "") this.problem = message;
    else {
      this.#hindered(message);
      this.#manager = null;
      // Longer pauses would make the datacenter count as silent.
      const pauseMsMax = this.#context.options.config.silenceMs / 2;
      this.#askAt = this.#context.now + Math.min(pauseMsMax, retryAfterMs ?? PAUSE_MS);
    }
  }

  #submit(): void {
    this.#askedAt ??= this.#context.now;
    const submission = this.#submission;
    const request = { kind: "submit", key: this.key, submission, routing: ANYWHERE } as const;
    this.#control({ kind: "client", request }, (answer, manager) => {
      if (answer.kind === "accepted") {
        this.job = answer.job;
        this.#hindered(null);
        this.#context.datacenters.succeeded(this.datacenter);
        this.lastSeenAt = this.#context.now;
        this.#askAt = this.#context.now;
      } else if (answer.kind === "missing") {
        this.#manager = manager;
        this.#upload(manager, answer.hashes);
      }
    });
  }

  #upload(manager: string, hashes: readonly string[]): void {
    this.#isBusy = true;
    const { datacenter } = this;
    upload(this.#context, { datacenter, manager }, hashes, (problem) => {
      this.#isBusy = false;
      this.#hindered(problem);
      if (problem === FILES_ABSENT && this.#isUnwanted) this.problem = problem;
      this.#askAt = this.#context.now + (problem === null ? 0 : PAUSE_MS);
      if (problem !== null) this.#manager = null;
      this.#ports.onNews();
    });
  }

  /**
   * The job has not started and is to be cancelled. If neither its datacenter nor this gate has its files, it cannot be
   * submitted to be cancelled; a copy submitted by another gate releases its cores by itself.
   */
  get #isUnwanted(): boolean {
    const { cancel, startAtMs } = this.#wanted;
    return cancel !== null && startAtMs === null;
  }

  #follow(): void {
    const seen = this.#isFresh ? this.observed : null;
    const control = seen === null ? null : controlFor(seen, this.#wanted, this.report);
    if (control !== null) {
      const request = { kind: "control", job: this.job, by: "gate", control } as const;
      // Polls again whatever the answer: a finished job refuses controls.
      this.#isFresh = false;
      this.#control({ kind: "client", request }, () => {
        this.#askAt = this.#context.now;
      });
      return;
    }
    const { live } = this.#wanted;
    const held = this.#ports.held();
    const request = { kind: "observe", job: this.job, line: this.#line, live, held } as const;
    this.#ask({ kind: "gate", request }, null, (answer, manager) => {
      if (answer.kind === "observed") this.#onObserved(manager, answer);
    });
  }

  #onObserved(manager: string, observed: Observed): void {
    const { now, options } = this.#context;
    this.#manager = manager;
    this.observed = observed;
    this.#isFresh = true;
    this.#hindered(null);
    this.lastSeenAt = now;
    this.queuedAt = observed.status === "QUEUED" ? (this.queuedAt ?? now) : null;
    this.#measureRate(observed.requests);
    for (const line of observed.lines) this.#ports.onLine(line);
    const { timeouts } = this.#context;
    timeouts.count("progressReceived", this.datacenter);
    const isLate = observed.clock?.overdue != null;
    if (isLate && !this.#isLate) timeouts.count("timeoutReceived", this.datacenter);
    this.#isLate = isLate;
    this.#line = observed.nextLine;
    this.#onFrames(observed);
    const acts = this.hasEnded || controlFor(observed, this.#wanted, this.report) !== null;
    const level = Math.max(this.#context.level, observed.level ?? 0);
    const pauseMs = options.config.observeMs + delayMs(backpressureLevel(level));
    const waitedMs = this.queuedAt === null ? 0 : now - this.queuedAt;
    const seldomMs = Math.min(WAITING_PAUSE_MS_MAX, WAITED_SHARE * waitedMs);
    this.#askAt = acts ? now : now + Math.max(pauseMs, seldomMs);
  }

  #measureRate(requests: number): void {
    const { now } = this.#context;
    const sinceMs = now - this.#counted.at;
    if (sinceMs < RATE_MS) return;
    // A new leader may know of fewer requests.
    this.ratePerSecond = (Math.max(0, requests - this.#counted.requests) * 1_000) / sinceMs;
    this.#counted = { at: now, requests };
  }

  #onFrames({ told: bytes, view }: Observed): void {
    const report = bytes === null ? null : decodeTold(bytes);
    if (report === null) return;
    this.report = report;
    this.#ports.onReport(report, view);
  }

  #fetchResult(): void {
    const hash = this.observed?.result ?? null;
    if (hash === null) {
      this.result = null;
      this.#ports.onNews();
      return;
    }
    this.#isBusy = true;
    download(this.#context, this.datacenter, hash, (bytes) => {
      this.#isBusy = false;
      this.#askAt = this.#context.now + PAUSE_MS;
      if (bytes !== null) this.result = bytes;
      this.#ports.onNews();
    });
  }
}

/** Next control that brings the job to the wanted state; null if it is there. */
function controlFor(
  { clock = null, factor, prepared, status, view }: Observed,
  wanted: Wanted,
  report: ToldRun | null,
): Control | null {
  const joint = wanted.joint.find(({ workflow }) =>
    report?.waits.some((one) => one.workflow === workflow),
  );
  if (ENDED_STATUSES.includes(status)) return null;
  if (status === "CANCELLING") return joint ?? null;
  if (wanted.cancel !== null) return { kind: "cancel", reason: wanted.cancel };
  if (wanted.timeOut !== null && clock !== null)
    return { kind: "timeOut", reason: wanted.timeOut, view, extendedMs: clock.extendedMs };
  if (wanted.startAtMs === null) return null;
  if (prepared) return { kind: "start", atMs: wanted.startAtMs };
  if (wanted.paused && status === "RUNNING") return { kind: "pause" };
  if (!wanted.paused && status === "PAUSED") return { kind: "resume" };
  if (joint !== undefined) return joint;
  const begun = status === "RUNNING" || status === "PAUSED";
  return begun && factor !== wanted.factor ? { kind: "scale", factor: wanted.factor } : null;
}
