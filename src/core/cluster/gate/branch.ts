/**
 * One job in one datacenter, as the gate that leads the job sees it. It is submitted there under a key of its
 * own, so that whoever leads the job finds the same one; then it is asked after again and again, and told
 * what it should do as long as it does something else. One request is under way at a time.
 *
 *     submit ─▶ (files) ─▶ observe, observe … ─▶ ended ─▶ its result is fetched
 *                             └─ start, pause, resume, scale, cancel: until it is seen to have them
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

/** After an answer that decides nothing. */
const PAUSE_MS = 200;
/** A job that waits for cores is asked after so often, by how long it has waited: thousands of them wait together. */
const WAITED_SHARE = 0.1;
/** But so often: cores that it was given have nothing to do until it is seen to have them. */
const WAITING_PAUSE_MS_MAX = 500;
/** What hinders for a shorter time, as while a leader is found, is not worth a word. */
const HINDERED_MS = 3_000;
/** Calls are counted over so long, at least. */
const RATE_MS = 1_000;
/** What never changes when it is sent again. */
const FINAL: readonly RefusalReason[] = ["invalid", "keyReused"];

/** What the job should do there. */
export interface Wanted {
  /** Milliseconds of the wall clock; null: it is not started yet. */
  readonly startAtMs: number | null;
  readonly paused: boolean;
  /** How many times the plan. */
  readonly factor: number;
  /** Why it is to end; null: it is not. */
  readonly cancel: string | null;
  /** Somebody looks at its figures. */
  readonly live: LiveWanted;
  /** Why its time is up; null: it is not. */
  readonly timeOut: string | null;
  /** Workflows that begin or are over in all datacenters. */
  readonly joint: readonly JointControl[];
}

/** Of a job that it has nothing to do with any more. */
export const UNWANTED: Wanted = {
  ...{ startAtMs: null, paused: false, factor: 1, cancel: null, timeOut: null },
  ...{ live: "none", joint: [] },
};

interface BranchPorts {
  /** Which of its figures are merged already; null: they are not wanted. */
  held(): HeldFigures | null;
  /** It has told figures, as the leader of this view knows them. */
  onTold(told: ToldRun, view: number): void;
  /** Something is known that was not before. */
  onNews(): void;
  /** This gate still leads the job. */
  isLed(): boolean;
  onLine(line: string): void;
}

export class Branch {
  readonly datacenter: string;
  readonly key: string;
  /** The job's id there; empty until it is known. */
  job = "";
  /** When this gate first sent it there, or was about to; another one may have done so before. Null: it has not. */
  #askedAt: number | null = null;
  observed: Observed | null = null;
  /** Calls over about the last second. */
  ratePerSecond = 0;
  /** What it told last of its figures, and what it waits for. */
  told: ToldRun | null = null;
  /** When it was last heard of; null: never. */
  heardAt: number | null = null;
  /** When it was first seen to wait there; null: it does not. */
  queuedAt: number | null = null;
  /** Why it can never run there. */
  problem: string | null = null;
  /** Why it is not there yet. */
  #hindrance: { readonly text: string; readonly since: number } | null = null;
  /** Its result, or null when it left none; undefined: not fetched. */
  result: Uint8Array | null | undefined;
  readonly #beganAt: number;
  readonly #context: GateContext;
  readonly #submission: Submission;
  readonly #ports: BranchPorts;
  #wanted: Wanted;
  #manager: string | null = null;
  #isBusy = false;
  /** It was seen since it was last told something. */
  #isFresh = false;
  #askAt: number;
  #line = 0;
  /** It has told that the job is overdue. */
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

  /** It has ended and what it left is here, or it never can run. */
  get isOver(): boolean {
    return this.problem !== null || (this.hasEnded && this.result !== undefined);
  }

  /** For how long nothing was heard of it. */
  silentMs(now: number): number {
    return now - (this.heardAt ?? this.#beganAt);
  }

  /** The same since it was first asked for: before that it has its turn to wait for. */
  unansweredMs(now: number): number {
    return now - (this.heardAt ?? this.#askedAt ?? now);
  }

  get wasAsked(): boolean {
    return this.#askedAt !== null;
  }

  /** How its time stands here, as far as this gate has heard. */
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
    // What is to end does not wait for the next look at it.
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

  /** Sent when the circuit to the datacenter lets it pass, if this gate still leads the job then. */
  #tell(message: ManagerMessage, then: (answer: ManagerAnswer, from: string) => void): void {
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
      // Who asks more seldom takes the datacenter for silent.
      const pauseMsMax = this.#context.options.config.silenceMs / 2;
      this.#askAt = this.#context.now + Math.min(pauseMsMax, retryAfterMs ?? PAUSE_MS);
    }
  }

  #submit(): void {
    this.#askedAt ??= this.#context.now;
    const submission = this.#submission;
    const request = { kind: "submit", key: this.key, submission, routing: ANYWHERE } as const;
    this.#tell({ kind: "client", request }, (answer, manager) => {
      if (answer.kind === "accepted") {
        this.job = answer.job;
        this.#hindered(null);
        this.#context.datacenters.succeeded(this.datacenter);
        this.heardAt = this.#context.now;
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
   * It has not begun and is to end. Where neither its datacenter nor anybody else has its files it cannot be told so:
   * what another gate may have had held there gives its cores back by itself.
   */
  get #isUnwanted(): boolean {
    const { cancel, startAtMs } = this.#wanted;
    return cancel !== null && startAtMs === null;
  }

  #follow(): void {
    const seen = this.#isFresh ? this.observed : null;
    const control = seen === null ? null : controlFor(seen, this.#wanted, this.told);
    if (control !== null) {
      const request = { kind: "control", job: this.job, by: "gate", control } as const;
      // Whatever comes of it, the job is looked at again: it may have ended, and refuses what it is told.
      this.#isFresh = false;
      this.#tell({ kind: "client", request }, () => {
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
    this.heardAt = now;
    this.queuedAt = observed.status === "QUEUED" ? (this.queuedAt ?? now) : null;
    this.#measureRate(observed.requests);
    for (const line of observed.lines) this.#ports.onLine(line);
    const { timeouts } = this.#context;
    timeouts.count("progressReceived", this.datacenter);
    const isLate = observed.clock?.overdue != null;
    if (isLate && !this.#isLate) timeouts.count("timeoutReceived", this.datacenter);
    this.#isLate = isLate;
    this.#line = observed.nextLine;
    this.#hear(observed);
    const acts = this.hasEnded || controlFor(observed, this.#wanted, this.told) !== null;
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
    // Another leader may know of fewer.
    this.ratePerSecond = (Math.max(0, requests - this.#counted.requests) * 1_000) / sinceMs;
    this.#counted = { at: now, requests };
  }

  #hear({ told: bytes, view }: Observed): void {
    const told = bytes === null ? null : decodeTold(bytes);
    if (told === null) return;
    this.told = told;
    this.#ports.onTold(told, view);
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

/** What it must be told to do what is wanted; null when it does. */
function controlFor(
  { clock = null, factor, prepared, status, view }: Observed,
  wanted: Wanted,
  told: ToldRun | null,
): Control | null {
  const joint = wanted.joint.find(({ workflow }) =>
    told?.waits.some((one) => one.workflow === workflow),
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
