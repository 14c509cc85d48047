/** Shared state of the parts of a gate: time, pending effects and open requests. */

import { Deadlines } from "../../base/deadlines.ts";
import { Random } from "../../base/random.ts";
import type { Condition } from "../../ledger/job/condition.ts";
import type { JobEvent } from "../../ledger/job/events.ts";
import type { JobId } from "../../ledger/job/job-id.ts";
import type { LedgerAnswer, LedgerRequest } from "../../ledger/node/messages.ts";
import { Peers } from "../manager/peers.ts";
import type { BlobHash } from "../messages.ts";
import type { BackpressureLevel } from "../overload/backpressure.ts";
import { TimeoutCounters } from "../overload/timeout-counters.ts";
import { type Answered, type DatacenterCall, DatacenterCalls } from "./calls.ts";
import { DatacenterTable } from "./datacenters.ts";
import { GatePeers } from "./gate-peers.ts";
import { eventIdOf, writerOfWish } from "./job-events.ts";
import { GATE_RULES, type GateRules } from "./rules.ts";
import type { GateEffect, GateLookup, GateOptions } from "./types.ts";
import { WaitingPlaces } from "./waiting-places.ts";

/** Delay before an undecided ledger request is retried. */
const RETRY_MS = 500;

/** Outcome of an append: committed, or the reason why the event will never change the job. */
export type Appended =
  | { readonly kind: "committed"; readonly outcome: string; readonly reason: string | null }
  /** Another gate leads the job or has changed it in the meantime. */
  | { readonly kind: "conflict" }
  | { readonly kind: "refused"; readonly message: string };

/** Event without the common fields. */
export type EventBody = JobEvent extends infer Event
  ? Event extends JobEvent
    ? Omit<Event, "jobId" | "eventId" | "fenceToken" | "hlc" | "condition">
    : never
  : never;

interface Waiting {
  readonly request: LedgerRequest;
  readonly done: (answer: LedgerAnswer) => void;
}

interface AppendOptions {
  /** Required state of the job; null for any. */
  readonly condition?: Condition | null;
  /** Idempotency key of a client request, which may be sent to several gates. */
  readonly wish?: string | undefined;
}

export class GateContext {
  readonly options: GateOptions;
  readonly rules: GateRules;
  readonly lookup: GateLookup;
  readonly datacenters: DatacenterTable;
  readonly calls: DatacenterCalls;
  /** Queue positions of waiting jobs. */
  readonly places: WaitingPlaces;
  /** The other gates. */
  readonly peers = new Peers();
  /** Health of all gates, including this one. */
  readonly gates: GatePeers;
  /** This gate accepts no new work. */
  isDraining = false;
  /** Overload level of this gate. */
  level: BackpressureLevel = 0;
  /** Counters of job timeouts. */
  readonly timeouts = new TimeoutCounters();
  /** Blobs that are complete here. */
  readonly blobs = new Set<BlobHash>();
  now = 0;
  wall = 0;
  readonly #requests = new Map<number, Waiting>();
  readonly #retries = new Deadlines<number>();
  readonly #parts = new Map<number, (bytes: Uint8Array | null, total: number) => void>();
  readonly #readers = new Map<BlobHash, ((bytes: Uint8Array | null) => void)[]>();
  #tokens = 0;
  #ids = 0;
  #events = 0;
  #effects: GateEffect[] = [];

  constructor(options: GateOptions, lookup: GateLookup) {
    this.options = options;
    this.rules = options.rules ?? GATE_RULES;
    this.lookup = lookup;
    this.places = new WaitingPlaces(lookup);
    this.gates = new GatePeers(this);
    this.datacenters = new DatacenterTable(this, options.datacenters);
    const random = new Random(`${options.self}/${options.boot}`);
    this.calls = new DatacenterCalls(this, options.datacenters, options.self, random);
  }

  setTime(now: number, wall: number): void {
    this.now = now;
    this.wall = wall;
  }

  emit(effect: GateEffect): void {
    this.#effects.push(effect);
  }

  takeEffects(): readonly GateEffect[] {
    const effects = this.#effects;
    this.#effects = [];
    return effects;
  }

  nextDeadline(): number | null {
    const never = Number.POSITIVE_INFINITY;
    const at = Math.min(this.#retries.next() ?? never, this.calls.nextDeadline());
    return at === never ? null : at;
  }

  onTick(): void {
    this.calls.onTick();
    for (const token of this.#retries.takeDue(this.now)) {
      const waiting = this.#requests.get(token);
      if (waiting !== undefined) this.emit({ kind: "ledger", token, request: waiting.request });
    }
  }

  /** Retries until the ledger decides. */
  request(request: LedgerRequest, done: (answer: LedgerAnswer) => void): void {
    const token = ++this.#tokens;
    this.#requests.set(token, { request, done });
    this.emit({ kind: "ledger", token, request });
  }

  onLedger(token: number, answer: LedgerAnswer): void {
    const waiting = this.#requests.get(token);
    if (waiting === undefined) return;
    const isOpen =
      answer.kind === "retry" ||
      answer.kind === "unknown" ||
      // A cancel that only this node remembers does not count as done.
      answer.kind === "passedOn" ||
      (answer.kind === "submitted" && answer.answer.kind === "retry");
    if (isOpen && waiting.request.kind !== "read") {
      // Retried with the same event id or key, so it takes effect once.
      this.#retries.set(token, this.now + RETRY_MS);
      return;
    }
    this.#requests.delete(token);
    waiting.done(answer);
  }

  /** `condition`: set by a leader, valid only while it leads and has seen the latest state; null for any gate. */
  append(
    job: string,
    body: EventBody,
    { condition = null, wish }: AppendOptions,
    done: (appended: Appended) => void,
  ): void {
    const { boot, self: gate } = this.options;
    const view = condition?.ifFence ?? 0;
    const requestor = "requestor" in body ? body.requestor : "";
    const writer = wish === undefined ? { gate, boot, number: this.#events++ } : writerOfWish(wish);
    const event = {
      ...body,
      jobId: job as JobId,
      eventId: eventIdOf({ ...writer, view, requestor }),
      fenceToken: view,
      hlc: { wallMs: Math.floor(this.wall), logical: 0, node: gate },
      ...(condition === null ? {} : { condition }),
    } as JobEvent;
    this.request({ kind: "append", event, durability: "NONE" }, (answer) => done(appended(answer)));
  }

  ask(call: DatacenterCall, done: Answered): void {
    this.calls.ask(call, done);
  }

  /** Null bytes if the blob is not here. */
  readPart(
    hash: BlobHash,
    offset: number,
    done: (bytes: Uint8Array | null, total: number) => void,
  ): void {
    const id = ++this.#ids;
    this.#parts.set(id, done);
    this.emit({ kind: "readPart", id, hash, offset });
  }

  onPartRead(id: number, bytes: Uint8Array | null, total: number): void {
    const done = this.#parts.get(id);
    this.#parts.delete(id);
    done?.(bytes, total);
  }

  readBlob(hash: BlobHash, done: (bytes: Uint8Array | null) => void): void {
    const readers = this.#readers.get(hash);
    if (readers !== undefined) {
      readers.push(done);
      return;
    }
    this.#readers.set(hash, [done]);
    this.emit({ kind: "readBlob", hash });
  }

  onBlobRead(hash: BlobHash, bytes: Uint8Array | null): void {
    const readers = this.#readers.get(hash) ?? [];
    this.#readers.delete(hash);
    for (const done of readers) done(bytes);
  }

  log(
    level: "info" | "warn" | "error",
    event: string,
    fields: Readonly<Record<string, string | number>>,
  ): void {
    this.emit({ kind: "log", level, event, fields });
  }
}

function appended(answer: LedgerAnswer): Appended {
  switch (answer.kind) {
    case "committed": {
      const { outcome, reason } = answer;
      return { kind: "committed", outcome, reason };
    }
    case "conflict":
      return { kind: "conflict" };
    case "refused":
      return { kind: "refused", message: answer.message };
    default:
      return { kind: "refused", message: `the ledger answered with ${answer.kind}` };
  }
}
