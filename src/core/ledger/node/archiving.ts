/**
 * Finished jobs leave memory after their retention and stay in the store's archive. From there they are read for
 * clients, and sent to replicas that still run the group: a replica that was down for longer than the retention finds
 * no peer to catch up from. (G-14, LEDG-8)
 *
 *     finished, retention over ──► archive effect, group removed
 *     read, or a peer that still runs the group ──► readArchive ──► archivedState ──► answer, or "archived"
 *     "archived" from a peer ──► its state, or ours if newer, into the archive, group removed
 *
 * An archived job is answered as it was when it left memory: its end is included; an event that came after the end and
 * changed nothing may be missing.
 */

import type { NodeId } from "../../base/ids.ts";
import type { GroupId } from "../group/messages.ts";
import { isTerminal, type JobState } from "../job/job-state.ts";
import { encodeJobState } from "../job/state-codec.ts";
import { ARCHIVE_EVERY_MS, ARCHIVE_READS_MAX } from "./config.ts";
import type { LedgerContext } from "./context.ts";
import type { Group } from "./group.ts";
import type { JobApp } from "./job-app.ts";
import type { LedgerAnswer } from "./messages.ts";
import type { Reply } from "./reply.ts";

interface ArchivingHooks {
  /** The group is about to be removed. */
  onGone(group: Group): void;
  answer(reply: Reply, answer: LedgerAnswer): void;
}

/** Requests waiting for a job to be read from the archive. */
interface Waiting {
  readonly replies: Reply[];
  readonly nodes: Set<NodeId>;
}

export class Archiving {
  readonly #context: LedgerContext;
  readonly #hooks: ArchivingHooks;
  readonly #waiting = new Map<string, Waiting>();
  #sweepAt = Number.POSITIVE_INFINITY;

  constructor(context: LedgerContext, hooks: ArchivingHooks) {
    this.#context = context;
    this.#hooks = hooks;
  }

  start(): void {
    this.#sweepAt = this.#context.now + ARCHIVE_EVERY_MS;
  }

  nextDeadline(): number {
    return this.#sweepAt;
  }

  onTick(): void {
    const { now, wallNow, options, groups } = this.#context;
    if (now < this.#sweepAt) return;
    this.#sweepAt = now + ARCHIVE_EVERY_MS;
    const before = wallNow - options.config.retentionMs;
    for (const group of groups.values()) {
      if (group.app.kind !== "job") continue;
      const { state } = group.app;
      const { replica } = group;
      const settled = replica.state.commit === replica.view().lastSeq;
      const isOver = isTerminal(state.status) && (state.endedAt?.wallMs ?? Infinity) <= before;
      if (isOver && settled) this.#move(group, group.app.snapshot());
    }
  }

  #move(group: Group, bytes: Uint8Array): void {
    const jobId = group.id;
    this.#context.emit({ kind: "archive", jobId, bytes });
    this.#context.archived.add(jobId);
    this.#hooks.onGone(group);
  }

  /** Answers with the job as the archive has it. */
  read(jobId: string, reply: Reply): void {
    const waiting = this.#ask(jobId);
    if (waiting !== null) waiting.replies.push(reply);
    else this.#hooks.answer(reply, { kind: "retry", why: "too many archived jobs are being read" });
  }

  /** A peer still runs the group of an archived job. */
  tell(jobId: string, to: NodeId): void {
    this.#ask(jobId)?.nodes.add(to);
  }

  #ask(jobId: string): Waiting | null {
    const known = this.#waiting.get(jobId);
    if (known !== undefined) return known;
    if (this.#waiting.size >= ARCHIVE_READS_MAX) return null;
    const waiting = { replies: [], nodes: new Set<NodeId>() };
    this.#waiting.set(jobId, waiting);
    this.#context.emit({ kind: "readArchive", jobId });
    return waiting;
  }

  /** Handles the archive's copy of a job; null if it has expired or cannot be read. */
  onState(jobId: string, state: JobState | null): void {
    const waiting = this.#waiting.get(jobId);
    this.#waiting.delete(jobId);
    if (waiting === undefined) return;
    const { self } = this.#context;
    const answer: LedgerAnswer =
      state === null
        ? { kind: "notFound", jobId }
        : {
            ...{ kind: "job", state, archived: true, servedBy: self },
            ...{ primary: null, view: 0, members: [] },
          };
    for (const reply of waiting.replies) this.#hooks.answer(reply, answer);
    if (state === null) return;
    for (const node of waiting.nodes) this.#context.send(node, { kind: "archived", state });
  }

  /** A peer has archived a job that we still run: no peer has later events of it. */
  onArchived(state: JobState): void {
    const group = this.#context.groups.get(state.jobId as string as GroupId);
    if (group?.app.kind !== "job" || group.replica.state.status === "broken") return;
    const newest = newestEnd(group.app, state);
    if (newest !== null) this.#move(group, newest);
  }
}

/** The longer of two ends of one history, as bytes; null when neither has ended. */
function newestEnd(app: JobApp, theirs: JobState): Uint8Array | null {
  const ours = app.state;
  if (isTerminal(ours.status) && ours.appliedSeq >= theirs.appliedSeq) return app.snapshot();
  if (!isTerminal(theirs.status) || theirs.appliedSeq < ours.appliedSeq) return null;
  return encodeJobState(theirs);
}
