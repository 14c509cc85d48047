/**
 * Watchers of jobs, and how far each has come. Nothing is queued per watcher: the log of a job is the queue, and a
 * watcher is an index in it. A slow watcher falls behind in the log; when the log has been compacted past it, it
 * receives a notice.
 *
 *     committed ──► the job's watchers have something to see ──► sent at the end of the turn, as far as
 *                   their credit allows, in order, each event once
 */

import type { GroupId, LogEntry } from "../group/messages.ts";
import { decodeEvent } from "../job/event-codec.ts";
import { type EventId, isCancel, type JobEvent } from "../job/events.ts";
import type { JobId } from "../job/job-id.ts";
import { findInTrail } from "../job/trail.ts";
import { candidates } from "./absence.ts";
import type { LedgerContext } from "./context.ts";
import type { Group } from "./group.ts";
import type { JobApp } from "./job-app.ts";
import {
  WATCH_ROOM_MAX,
  WATCHERS_MAX,
  type WatchItem,
  type WatchRequest,
  type WatchScope,
} from "./watch.ts";

interface Watcher {
  readonly token: number;
  readonly scope: WatchScope;
  /** Last index seen per job, or skipped because there was nothing to see. */
  readonly places: Map<string, number>;
  /** Jobs that may have more for it. */
  readonly open: Set<Group>;
  /** Jobs it watches from now on whose starting index was not sent yet. */
  readonly fromNow: Set<Group>;
  room: number;
}

export class Watches {
  readonly #context: LedgerContext;
  readonly #watchers = new Map<number, Watcher>();
  readonly #byJob = new Map<string, Set<Watcher>>();
  readonly #ofMany = new Set<Watcher>();
  /** Watchers with open jobs and remaining credit. */
  readonly #ready = new Set<Watcher>();

  constructor(context: LedgerContext) {
    this.#context = context;
  }

  get size(): number {
    return this.#watchers.size;
  }

  /** `room`: credit in items until the watcher grants more. */
  begin(token: number, { scope, after, since }: WatchRequest, room: number): void {
    if (this.#watchers.size >= WATCHERS_MAX) {
      this.#emit(token, [{ kind: "refused", why: "this node has too many watchers" }]);
      return;
    }
    const places = new Map<string, number>(after.map(({ jobId, seq }) => [jobId, seq]));
    const [open, fromNow] = [new Set<Group>(), new Set<Group>()];
    const watcher = { token, scope, places, open, fromNow, room: 0 };
    const follow = (group: Group): void => {
      if (group.app.kind !== "job") return;
      if (since === "now" && !places.has(group.id)) fromNow.add(group);
      open.add(group);
    };
    const { groups } = this.#context;
    if (scope.kind === "job") {
      const group = groups.get(scope.jobId as string as GroupId);
      if (group === undefined || group.replica.state.status === "retired") {
        this.#emit(token, [this.#absent(scope.jobId, group)]);
        return;
      }
      this.#byJob.set(scope.jobId, (this.#byJob.get(scope.jobId) ?? new Set()).add(watcher));
      follow(group);
    } else {
      this.#ofMany.add(watcher);
      for (const group of groups.values()) {
        if (group.id.startsWith(scope.prefix)) follow(group);
      }
    }
    this.#watchers.set(token, watcher);
    this.makeRoom(token, room);
  }

  /** The watcher has taken what it was sent, or has more space. */
  makeRoom(token: number, count: number): void {
    const watcher = this.#watchers.get(token);
    if (watcher === undefined) return;
    watcher.room = Math.min(watcher.room + count, WATCH_ROOM_MAX);
    if (watcher.open.size > 0) this.#ready.add(watcher);
  }

  end(token: number): void {
    const watcher = this.#watchers.get(token);
    if (watcher === undefined) return;
    this.#watchers.delete(token);
    this.#ready.delete(watcher);
    this.#ofMany.delete(watcher);
    if (watcher.scope.kind !== "job") return;
    const { jobId } = watcher.scope;
    const others = this.#byJob.get(jobId);
    others?.delete(watcher);
    if (others?.size === 0) this.#byJob.delete(jobId);
  }

  /** A job has moved on. */
  onApplied(group: Group): void {
    // Called for every event of every job, mostly without any watcher.
    if (this.#watchers.size === 0) return;
    for (const watcher of this.#byJob.get(group.id) ?? []) this.#open(watcher, group);
    for (const watcher of this.#ofMany) {
      if (watcher.scope.kind === "jobs" && group.id.startsWith(watcher.scope.prefix)) {
        this.#open(watcher, group);
      }
    }
  }

  /** A cancel that is not committed: sent only to watchers with credit, since nothing is queued. (G-18) */
  onStop(event: JobEvent): void {
    if (!isCancel(event)) return;
    const { jobId } = event;
    for (const watcher of this.#watchers.values()) {
      const { scope, token } = watcher;
      const ours = scope.kind === "job" ? scope.jobId === jobId : jobId.startsWith(scope.prefix);
      if (!ours || watcher.room <= 0) continue;
      watcher.room--;
      this.#emit(token, [{ kind: "stop", jobId, event }]);
    }
  }

  /** A job's group is about to leave memory, or this node is no replica of it any more. */
  onGone(group: Group): void {
    const jobId = group.id as string as JobId;
    for (const watcher of this.#byJob.get(jobId) ?? []) {
      this.#emit(watcher.token, [...missed(watcher, group), this.#absent(jobId, group)]);
      this.end(watcher.token);
    }
    for (const watcher of this.#ofMany) {
      const items = [...missed(watcher, group)];
      watcher.open.delete(group);
      watcher.fromNow.delete(group);
      // A watcher that has seen the end of a job needs no notice of its archiving. A group that moved elsewhere may
      // come back.
      if (this.#context.archived.has(jobId)) watcher.places.delete(jobId);
      else {
        watcher.places.set(jobId, Math.max(watcher.places.get(jobId) ?? -1, group.app.appliedSeq));
        items.push(this.#absent(jobId, group));
      }
      watcher.room -= items.length;
      this.#emit(watcher.token, items);
    }
  }

  /** Sends each watcher its pending items within its credit; called at the end of a turn. */
  deliver(): void {
    for (const watcher of this.#ready) {
      const items: WatchItem[] = [];
      for (const group of watcher.open) {
        if (watcher.room <= 0) break;
        if (group.app.kind !== "job") continue;
        const taken = this.#take(watcher, group, group.app, watcher.room);
        watcher.room -= taken.length;
        items.push(...taken);
        if ((watcher.places.get(group.id) ?? -1) >= group.app.appliedSeq)
          watcher.open.delete(group);
      }
      if (watcher.open.size === 0 || watcher.room <= 0) this.#ready.delete(watcher);
      this.#emit(watcher.token, items);
    }
  }

  #open(watcher: Watcher, group: Group): void {
    if (group.app.kind !== "job") return;
    watcher.open.add(group);
    if (watcher.room > 0) this.#ready.add(watcher);
  }

  /** The next items of one job, in order, and the watcher's place behind them. */
  #take(watcher: Watcher, group: Group, app: JobApp, limit: number): WatchItem[] {
    const { id, replica } = group;
    const jobId = id as string as JobId;
    if (watcher.fromNow.delete(group)) {
      watcher.places.set(id, app.appliedSeq);
      return [{ kind: "from", jobId, seq: app.appliedSeq }];
    }
    const items: WatchItem[] = [];
    const { entries, firstSeq } = replica.state;
    let seen = watcher.places.get(id) ?? -1;
    if (seen + 1 < firstSeq && seen < app.appliedSeq) {
      seen = firstSeq - 1;
      items.push({ kind: "behind", jobId, seq: seen });
    }
    while (seen < app.appliedSeq && items.length < limit) {
      const entry = entries[seen + 1 - firstSeq];
      if (entry === undefined) break;
      seen = entry.seq;
      const item = entry.kind === "op" ? itemOf(jobId, app, entry) : null;
      if (item === null) continue;
      // A run of events that the job's trail has forgotten is sent as one item.
      if (item.kind === "behind" && items.at(-1)?.kind === "behind") items.pop();
      items.push(item);
    }
    const { watchKeepsPlace } = this.#context.options.rules.node;
    watcher.places.set(id, watchKeepsPlace ? seen : app.appliedSeq);
    return items;
  }

  #absent(jobId: JobId, group: Group | undefined): WatchItem {
    if (this.#context.archived.has(jobId)) return { kind: "archived", jobId };
    const nodes =
      group?.replica.state.members ??
      candidates(this.#context.topology, jobId as string as GroupId);
    return { kind: "elsewhere", jobId, nodes };
  }

  #emit(token: number, items: readonly WatchItem[]): void {
    if (items.length > 0) this.#context.emit({ kind: "watched", token, items });
  }
}

/** Items a watcher has missed of a job that leaves memory. */
function missed({ places, open }: Watcher, group: Group): WatchItem[] {
  const { appliedSeq } = group.app;
  if (!open.has(group) || (places.get(group.id) ?? -1) >= appliedSeq) return [];
  return [{ kind: "behind", jobId: group.id as string as JobId, seq: appliedSeq }];
}

/** Null for a repetition: its event was seen where it came first. (EVT-2) */
function itemOf(jobId: JobId, { state }: JobApp, { seq, view, data }: LogEntry): WatchItem | null {
  const decoded = decodeEvent(data);
  if (!decoded.ok) return null;
  const event = decoded.value;
  const entry = findInTrail(state.trail, event.eventId as EventId);
  if (entry === undefined) return { kind: "behind", jobId, seq };
  if (entry.seq !== seq) return null;
  const { outcome, reason } = entry;
  return { kind: "event", jobId, seq, view, event, outcome, reason };
}
