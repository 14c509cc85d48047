/**
 * The last events of one job: what came, at which place of the log, what became of it. It answers two
 * questions: "was this event id here before?" and "what happened to this job?". Of older events only
 * the first can be answered.
 *
 *     open, at most 32, newest first │ sealed chunks of 32, by event id │ forgotten: fingerprints only
 *
 * A value like the rest of the state: adding makes a new trail, and copies nothing of an open chunk.
 */

import type { Hlc } from "../../base/hlc.ts";
import type { EventId, JobEventKind } from "./events.ts";
import { type Forgotten, fingerprintOf, forget } from "./forgotten.ts";
import { TRAIL_EVENTS_MAX } from "./limits.ts";

export type TrailOutcome = "applied" | "noop" | "rejected" | "alreadyTerminal";

export interface TrailEntry {
  readonly seq: number;
  readonly eventId: EventId;
  readonly kind: JobEventKind;
  readonly hlc: Hlc;
  readonly outcome: TrailOutcome;
  /** Why it was rejected; null otherwise. */
  readonly reason: string | null;
}

/** A list whose tail is shared by every trail derived from it. */
interface Open {
  readonly entry: TrailEntry;
  readonly older: Open | null;
  readonly count: number;
}

export interface Trail {
  readonly open: Open | null;
  readonly sealed: readonly ReadonlyMap<EventId, TrailEntry>[];
  readonly forgotten: Forgotten;
}

export const CHUNK_EVENTS = 32;
const SEALED_MAX = TRAIL_EVENTS_MAX / CHUNK_EVENTS - 1;

export const EMPTY_TRAIL: Trail = { open: null, sealed: [], forgotten: [] };

export function addToTrail(trail: Trail, entry: TrailEntry): Trail {
  const older = trail.open;
  const open = { entry, older, count: (older?.count ?? 0) + 1 };
  if (open.count < CHUNK_EVENTS) {
    return { open, sealed: trail.sealed, forgotten: trail.forgotten };
  }
  const chunk = new Map(oldestFirst(open).map((one) => [one.eventId, one]));
  const sealed = [...trail.sealed, chunk];
  const oldest = sealed.length > SEALED_MAX ? sealed.shift() : undefined;
  if (oldest === undefined) return { open: null, sealed, forgotten: trail.forgotten };
  const forgotten = forget(trail.forgotten, [...oldest.keys()].map(fingerprintOf));
  return { open: null, sealed, forgotten };
}

export function findInTrail(trail: Trail, eventId: EventId): TrailEntry | undefined {
  for (let open = trail.open; open !== null; open = open.older) {
    if (open.entry.eventId === eventId) return open.entry;
  }
  for (const chunk of trail.sealed) {
    const entry = chunk.get(eventId);
    if (entry !== undefined) return entry;
  }
  return undefined;
}

/** Oldest first. */
export function* trailEntries(trail: Trail): Generator<TrailEntry> {
  for (const chunk of trail.sealed) yield* chunk.values();
  yield* oldestFirst(trail.open);
}

function oldestFirst(newest: Open | null): TrailEntry[] {
  const entries: TrailEntry[] = [];
  for (let open = newest; open !== null; open = open.older) entries.push(open.entry);
  return entries.reverse();
}
