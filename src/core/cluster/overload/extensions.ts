/**
 * Grants more time to a busy worker that does not advance, before it is given up. (AD-26)
 *
 *     no deadline ── stands still ──▶ deadline ── grant: + base/2, /4 …, at least a second ──▶ a later deadline
 *          ▲                             │ ▲────────────────────────────────────────────────────┘
 *          ├── advances ─────────────────┘ passes, then the grace ─▶ to be given up
 *          └── recovers: asks from the start again
 *
 * Every further request must show progress since the one before. All grants of one series together are less than one
 * deadline. Times are those of the granting node; a peer is sent durations from now.
 */

import type { ExtensionAnswer, ExtensionDenial, ExtensionRequest } from "../extension-messages.ts";

export interface ExtensionLimits {
  /** How long to wait for a worker that does not advance. */
  readonly baseMs: number;
  readonly grantMsMin: number;
  readonly grantsMax: number;
  /** A warning is sent when this many grants are left, or fewer. */
  readonly warnAt: number;
  /** From its deadline, or from the first request that finds no grant left, until it is given up. */
  readonly graceMs: number;
  /** Requests that find no grant left before it is given up without the grace period. */
  readonly denialsMax: number;
}

export const EXTENSION_DEFAULTS: ExtensionLimits = {
  baseMs: 30_000,
  grantMsMin: 1_000,
  grantsMax: 5,
  warnAt: 1,
  graceMs: 10_000,
  denialsMax: 3,
};

/** `count`: grants before this one. (AD-26.2) */
export function grantMs(count: number, { baseMs, grantMsMin }: ExtensionLimits): number {
  return Math.max(grantMsMin, baseMs / 2 ** (count + 1));
}

/** Extensions of one worker incarnation. */
export class Extensions {
  readonly #limits: ExtensionLimits;
  #count = 0;
  #totalMs = 0;
  #progress = 0;
  #isWarned = false;
  #deadline: number | null = null;
  /** When a request first found no grant left. */
  #exhaustedAt: number | null = null;
  #denials = 0;
  #last: { readonly number: number; readonly answer: ExtensionAnswer } | null = null;

  constructor(limits: ExtensionLimits = EXTENSION_DEFAULTS) {
    this.#limits = limits;
  }

  /** Deadline for progress; null: none is running. */
  get deadline(): number | null {
    return this.#deadline;
  }

  /** Grants in this series. */
  get count(): number {
    return this.#count;
  }

  get totalMs(): number {
    return this.#totalMs;
  }

  /** Starts a deadline for a worker without progress since then; a running deadline stays. */
  standsStill(since: number): void {
    this.#deadline ??= since + this.#limits.baseMs;
  }

  /** Ends the deadline on progress; grants count until the worker has recovered. */
  advances(): void {
    this.#deadline = null;
    this.#exhaustedAt = null;
    this.#denials = 0;
  }

  /** Resets the series: the worker finished its work, or is as fast as before. (AD-26.10) */
  recovers(): void {
    this.advances();
    this.#count = 0;
    this.#totalMs = 0;
    this.#progress = 0;
    this.#isWarned = false;
  }

  /** When the worker is given up if nothing happens until then; null: no deadline is running. (AD-26.12) */
  evictAt(): number | null {
    if (this.#deadline === null) return null;
    const { denialsMax, graceMs } = this.#limits;
    if (this.#denials >= denialsMax) return this.#deadline;
    return Math.max(this.#deadline, this.#exhaustedAt ?? 0) + graceMs;
  }

  /** `isSuspect`: its deadline has passed, or it is silent. */
  request(request: ExtensionRequest, now: number, isSuspect: boolean): ExtensionAnswer {
    // The answer was lost: a repeated request is neither granted twice nor counted against the worker.
    if (this.#last?.number === request.number) return this.#last.answer;
    const isRepeat = this.#last !== null && request.number < this.#last.number;
    const answer = isRepeat ? this.#deny("invalid", "it is older than another", now) : null;
    const given = answer ?? this.#decide(request, now, isSuspect);
    if (!isRepeat) this.#last = { number: request.number, answer: given };
    return given;
  }

  #decide({ progress }: ExtensionRequest, now: number, isSuspect: boolean): ExtensionAnswer {
    const { baseMs, grantsMax } = this.#limits;
    if (!(progress >= 0 && progress <= 1))
      return this.#deny("invalid", `progress is from 0 to 1, not ${progress}`, now);
    this.#deadline ??= now + baseMs;
    if (this.#count >= grantsMax) return this.#exhaust(now);
    if (this.#count > 0 && progress <= this.#progress) {
      const text = `nothing has advanced since the last grant: ${this.#progress} then, ${progress} now`;
      return this.#deny("no_progress", text, now);
    }
    if (isSuspect || now > this.#deadline)
      return this.#deny("suspect", "its time is up already", now);
    return this.#grant(progress, now);
  }

  #exhaust(now: number): ExtensionAnswer {
    this.#exhaustedAt ??= now;
    this.#denials++;
    const text = `it was given more time ${this.#count} times, which is all there is`;
    return this.#deny("max_extensions_exceeded", text, now);
  }

  #grant(progress: number, now: number): ExtensionAnswer {
    const extensionMs = grantMs(this.#count, this.#limits);
    this.#count++;
    this.#totalMs += extensionMs;
    this.#progress = progress;
    // Extends the deadline, not the current time: an early request loses nothing.
    const deadline = (this.#deadline ?? now) + extensionMs;
    this.#deadline = deadline;
    const { grantsMax, warnAt } = this.#limits;
    const remaining = grantsMax - this.#count;
    const isWarning = remaining <= warnAt && !this.#isWarned;
    this.#isWarned ||= isWarning;
    const deadlineMs = Math.max(0, deadline - now);
    const told = { denial: "", message: "", graceMs: 0 } as const;
    return { granted: true, extensionMs, deadlineMs, remaining, isWarning, ...told };
  }

  #deny(denial: ExtensionDenial, message: string, now: number): ExtensionAnswer {
    const { graceMs, grantsMax } = this.#limits;
    const exhaustedAt = this.#exhaustedAt;
    return {
      ...{ granted: false, extensionMs: 0, isWarning: false, denial, message },
      deadlineMs: Math.max(0, (this.#deadline ?? now) - now),
      remaining: grantsMax - this.#count,
      graceMs: exhaustedAt === null ? 0 : Math.max(0, exhaustedAt + graceMs - now),
    };
  }
}
