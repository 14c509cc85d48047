/**
 * The commit pipeline: three stages, each making an event safer, and an answer that names the stage
 * really reached. (PIPE-1 to PIPE-8)
 *
 *     submit ──> 1 LOCAL     own log, synced        ─┐
 *           ├──> 2 REGIONAL  the datacenter's group  ├─ level = the highest confirmed, once local is durable
 *           └──> 3 GLOBAL    the job's group        ─┘
 *
 * Stage 1 is issued first; the rounds of the others overlap its sync. Nothing is reported before the own
 * copy is durable. GLOBAL runs stages 2 and 3 side by side, so a region that does not answer does not
 * hold up the world; REGIONAL answers after stage 2 and sends stage 3 on in the background.
 *
 * A timeout means "outcome unknown at that level", never "failed": the waiter is answered and forgotten,
 * the entry stays and its proposals are repeated until they are confirmed or superseded. Proposals and
 * confirmations carry the event id, so repeating them changes nothing. (EVT-2)
 */

import { assert } from "../../base/assert.ts";
import type { Millis } from "../../base/brand.ts";
import { Deadlines } from "../../base/deadlines.ts";
import type { HlcStamp } from "../../base/hlc.ts";
import type { Random } from "../../base/random.ts";
import type { PipelineConfig } from "./config.ts";
import { atLeast, type Durability, higher } from "./durability.ts";
import type { EventId } from "./events.ts";
import type { JobId } from "./job-id.ts";

/** The replicated stages. */
export type Tier = "regional" | "global";

export interface PipelineOptions {
  /** Managers have no global tier; a gate outside of any datacenter group has no regional one. */
  readonly tiers: Readonly<Record<Tier, boolean>>;
  readonly config: PipelineConfig;
}

export interface CommitResult {
  /** `unknown`: not confirmed in time, may still come true. `refused`: nothing was written. */
  readonly outcome: "reached" | "unknown" | "refused";
  readonly lsn: number | null;
  readonly hlc: HlcStamp | null;
  readonly durabilityAchieved: Durability;
  readonly regionalConfirmed: boolean;
  readonly globalConfirmed: boolean;
  readonly error: string | null;
}

export type PipelineInput =
  /** `waiter` names the caller's answer, unique among those waiting. */
  | {
      readonly kind: "submit";
      readonly waiter: number;
      readonly eventId: EventId;
      readonly jobId: JobId;
      readonly required: Durability;
    }
  /** The own copy is durable; lsn and time are the entry's own. (PIPE-6) */
  | {
      readonly kind: "localDurable";
      readonly eventId: EventId;
      readonly lsn: number;
      readonly hlc: HlcStamp;
    }
  | { readonly kind: "regionalCommitted"; readonly eventId: EventId }
  | { readonly kind: "globalCommitted"; readonly eventId: EventId }
  /** The event can no longer take effect; nothing is gained by proposing it again. */
  | { readonly kind: "superseded"; readonly eventId: EventId }
  /** After a restart: an entry of our log that was not confirmed at its level. (PIPE-4) */
  | {
      readonly kind: "resume";
      readonly eventId: EventId;
      readonly jobId: JobId;
      readonly lsn: number;
      readonly hlc: HlcStamp;
      readonly reached: "LOCAL" | "REGIONAL";
      readonly required: Durability;
    }
  | { readonly kind: "tick" }
  | { readonly kind: "shutdown" };

export type PipelineEffect =
  | { readonly kind: "append"; readonly eventId: EventId; readonly jobId: JobId }
  | {
      readonly kind: "propose";
      readonly tier: Tier;
      readonly eventId: EventId;
      readonly jobId: JobId;
      readonly attempt: number;
    }
  | { readonly kind: "answer"; readonly waiter: number; readonly result: CommitResult }
  /** The log notes that the entry advanced; each state at most once. (WAL-9) */
  | {
      readonly kind: "markState";
      readonly eventId: EventId;
      readonly lsn: number;
      readonly state: "REGIONAL" | "GLOBAL";
    };

interface Entry {
  readonly eventId: EventId;
  readonly jobId: JobId;
  /** The level to reach, in the background too. */
  target: Durability;
  local: { readonly lsn: number; readonly hlc: HlcStamp } | null;
  readonly confirmed: Record<Tier, boolean>;
  /** Proposals made so far; zero: not started. */
  readonly attempts: Record<Tier, number>;
  marked: Durability;
  readonly waiters: Map<number, Durability>;
}

const WAITERS_PER_EVENT_MAX = 64;

export class CommitPipeline {
  readonly #options: PipelineOptions;
  readonly #random: Random;
  readonly #entries = new Map<EventId, Entry>();
  readonly #waiting = new Map<number, Entry>();
  readonly #timeouts = new Deadlines<number>();
  readonly #retries: Readonly<Record<Tier, Deadlines<EventId>>> = {
    regional: new Deadlines(),
    global: new Deadlines(),
  };
  #effects: PipelineEffect[] = [];

  constructor(options: PipelineOptions, random: Random) {
    this.#options = options;
    this.#random = random;
  }

  /** What is held: all zero when nothing is under way. (PIPE-7) */
  get sizes(): { readonly entries: number; readonly waiters: number; readonly timers: number } {
    const { global, regional } = this.#retries;
    return {
      entries: this.#entries.size,
      waiters: this.#waiting.size,
      timers: this.#timeouts.size + global.size + regional.size,
    };
  }

  /** Whether an event is under way: not yet confirmed at the level it goes for. */
  has(eventId: EventId): boolean {
    return this.#entries.has(eventId);
  }

  nextDeadline(): Millis | null {
    const { global, regional } = this.#retries;
    const all = [this.#timeouts.next(), regional.next(), global.next()];
    const set = all.filter((at) => at !== null);
    return set.length === 0 ? null : (Math.min(...set) as Millis);
  }

  step(input: PipelineInput, now: Millis): readonly PipelineEffect[] {
    this.#effects = [];
    switch (input.kind) {
      case "submit":
        this.#onSubmit(input, now);
        break;
      case "resume":
        this.#onResume(input, now);
        break;
      case "localDurable":
        this.#onConfirmed(input.eventId, now, (entry) => {
          entry.local ??= { lsn: input.lsn, hlc: input.hlc };
        });
        break;
      case "regionalCommitted":
        this.#onConfirmed(input.eventId, now, (entry) => this.#confirm(entry, "regional"));
        break;
      case "globalCommitted":
        this.#onConfirmed(input.eventId, now, (entry) => this.#confirm(entry, "global"));
        break;
      case "superseded":
        this.#drop(input.eventId, "Superseded");
        break;
      case "tick":
        this.#onTick(now);
        break;
      case "shutdown":
        for (const eventId of [...this.#entries.keys()]) this.#drop(eventId, "Shutting down");
        break;
    }
    return this.#effects;
  }

  #onSubmit(input: Extract<PipelineInput, { kind: "submit" }>, now: Millis): void {
    const { eventId, jobId, required, waiter } = input;
    assert(!this.#waiting.has(waiter), "a waiter waits for one answer");
    if (required === "NONE") {
      this.#answer(waiter, "reached", null, null);
      return;
    }
    const known = this.#entries.get(eventId);
    const refusal = this.#refusal(required, known);
    if (refusal !== null) {
      this.#answer(waiter, "refused", known ?? null, refusal);
      return;
    }
    // A repeated submission of an event under way joins it: one copy in the log.
    const entry = known ?? this.#open(eventId, jobId, required);
    if (known === undefined) this.#effects.push({ kind: "append", eventId, jobId });
    entry.target = higher(entry.target, this.#targetOf(required));
    entry.waiters.set(waiter, required);
    this.#waiting.set(waiter, entry);
    this.#timeouts.set(waiter, now + this.#patienceMs(required));
    this.#advance(entry, now, required === "GLOBAL");
  }

  #refusal(required: Durability, known: Entry | undefined): string | null {
    const { config, tiers } = this.#options;
    if (required === "GLOBAL" && !tiers.global) return "This node has no global tier";
    if (required === "REGIONAL" && !tiers.regional && !tiers.global) {
      return "This node has no replicated tier";
    }
    const isFull = known === undefined && this.#entries.size >= config.entriesMax;
    const isCrowded = known !== undefined && known.waiters.size >= WAITERS_PER_EVENT_MAX;
    return isFull || isCrowded ? "Too many commits under way" : null;
  }

  /** Resumed entries are taken beyond the bound: the log already holds them. */
  #onResume(input: Extract<PipelineInput, { kind: "resume" }>, now: Millis): void {
    const { eventId, hlc, jobId, lsn, reached, required } = input;
    if (this.#entries.has(eventId)) return;
    const entry = this.#open(eventId, jobId, required);
    entry.local = { lsn, hlc };
    entry.marked = reached;
    entry.confirmed.regional = reached === "REGIONAL";
    this.#advance(entry, now, required === "GLOBAL");
  }

  #open(eventId: EventId, jobId: JobId, required: Durability): Entry {
    const entry: Entry = {
      eventId,
      jobId,
      target: this.#targetOf(required),
      local: null,
      confirmed: { regional: false, global: false },
      attempts: { regional: 0, global: 0 },
      marked: "NONE",
      waiters: new Map(),
    };
    this.#entries.set(eventId, entry);
    return entry;
  }

  /** What was asked for replication goes as far as this node can take it. (PIPE-2) */
  #targetOf(required: Durability): Durability {
    if (!atLeast(required, "REGIONAL")) return "LOCAL";
    return this.#options.tiers.global ? "GLOBAL" : "REGIONAL";
  }

  #patienceMs(required: Durability): number {
    const { globalTimeoutMs, regionalTimeoutMs } = this.#options.config;
    return required === "GLOBAL" ? globalTimeoutMs : regionalTimeoutMs;
  }

  #onConfirmed(eventId: EventId, now: Millis, note: (entry: Entry) => void): void {
    const entry = this.#entries.get(eventId);
    if (entry === undefined) return;
    note(entry);
    this.#advance(entry, now, false);
  }

  #confirm(entry: Entry, tier: Tier): void {
    entry.confirmed[tier] = true;
    this.#retries[tier].delete(entry.eventId);
    // What the world holds the region need not confirm any more.
    if (tier === "global") this.#retries.regional.delete(entry.eventId);
  }

  /** Starts what may start, marks and answers what is reached, forgets what is done. */
  #advance(entry: Entry, now: Millis, wantsGlobalNow: boolean): void {
    this.#start(entry, now, wantsGlobalNow);
    const level = reachedBy(entry);
    if (entry.local !== null && atLeast(level, "REGIONAL") && !atLeast(entry.marked, level)) {
      const state = level === "GLOBAL" ? "GLOBAL" : "REGIONAL";
      entry.marked = state;
      this.#effects.push({
        kind: "markState",
        eventId: entry.eventId,
        lsn: entry.local.lsn,
        state,
      });
    }
    for (const [waiter, required] of entry.waiters) {
      if (atLeast(level, required)) this.#settle(waiter, "reached", null);
    }
    if (atLeast(level, entry.target)) this.#forget(entry);
  }

  #start(entry: Entry, now: Millis, wantsGlobalNow: boolean): void {
    if (entry.target === "LOCAL" || entry.confirmed.global) return;
    const { tiers } = this.#options;
    if (tiers.regional && !entry.confirmed.regional && entry.attempts.regional === 0) {
      this.#propose(entry, "regional", now);
    }
    const mayGoOn = wantsGlobalNow || entry.confirmed.regional || !tiers.regional;
    if (entry.target === "GLOBAL" && mayGoOn && entry.attempts.global === 0) {
      this.#propose(entry, "global", now);
    }
  }

  #propose(entry: Entry, tier: Tier, now: Millis): void {
    const { eventId, jobId } = entry;
    const attempt = ++entry.attempts[tier];
    this.#effects.push({ kind: "propose", tier, eventId, jobId, attempt });
    this.#retries[tier].set(eventId, now + this.#backoffMs(attempt));
  }

  #backoffMs(attempt: number): number {
    const { retryJitter, retryMsFirst, retryMsMax } = this.#options.config;
    const waitMs = Math.min(retryMsFirst * 2 ** (attempt - 1), retryMsMax);
    return Math.ceil(waitMs * (1 + retryJitter * this.#random.float()));
  }

  #onTick(now: Millis): void {
    for (const waiter of this.#timeouts.takeDue(now)) {
      const entry = this.#waiting.get(waiter);
      assert(entry !== undefined, "a timeout belongs to a waiter");
      this.#settle(waiter, "unknown", this.#timeoutText(reachedBy(entry)));
    }
    for (const tier of ["regional", "global"] as const) {
      for (const eventId of this.#retries[tier].takeDue(now)) {
        const entry = this.#entries.get(eventId);
        assert(entry !== undefined, "a retry belongs to an entry");
        this.#propose(entry, tier, now);
      }
    }
  }

  /** Names the stage that did not answer. (PIPE-5) */
  #timeoutText(level: Durability): string {
    if (level === "NONE") return "Local write timeout";
    const isRegional = level === "LOCAL" && this.#options.tiers.regional;
    return isRegional ? "Regional consensus timeout" : "Global replication timeout";
  }

  #drop(eventId: EventId, error: string): void {
    const entry = this.#entries.get(eventId);
    if (entry === undefined) return;
    for (const waiter of [...entry.waiters.keys()]) this.#settle(waiter, "unknown", error);
    this.#forget(entry);
  }

  #forget(entry: Entry): void {
    assert(entry.waiters.size === 0, "nobody waits for an entry that is forgotten");
    this.#entries.delete(entry.eventId);
    this.#retries.regional.delete(entry.eventId);
    this.#retries.global.delete(entry.eventId);
  }

  #settle(waiter: number, outcome: CommitResult["outcome"], error: string | null): void {
    const entry = this.#waiting.get(waiter);
    assert(entry !== undefined, "a waiter is answered once");
    entry.waiters.delete(waiter);
    this.#waiting.delete(waiter);
    this.#timeouts.delete(waiter);
    this.#answer(waiter, outcome, entry, error);
  }

  #answer(
    waiter: number,
    outcome: CommitResult["outcome"],
    entry: Entry | null,
    error: string | null,
  ): void {
    const result: CommitResult = {
      outcome,
      lsn: entry?.local?.lsn ?? null,
      hlc: entry?.local?.hlc ?? null,
      durabilityAchieved: entry === null ? "NONE" : reachedBy(entry),
      regionalConfirmed: entry?.confirmed.regional ?? false,
      globalConfirmed: entry?.confirmed.global ?? false,
      error,
    };
    this.#effects.push({ kind: "answer", waiter, result });
  }
}

/** No level counts before the own copy is durable. (PIPE-1) */
function reachedBy({ confirmed, local }: Entry): Durability {
  if (local === null) return "NONE";
  if (confirmed.global) return "GLOBAL";
  return confirmed.regional ? "REGIONAL" : "LOCAL";
}
