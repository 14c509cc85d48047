/**
 * Reads of a job, each at its level: from this replica's own state where the level allows it, else
 * after a quorum has confirmed that this node still leads the group. (SESS-1..4, VSR-24)
 */

import { Deadlines } from "../../base/deadlines.ts";
import type { LedgerContext } from "./context.ts";
import type { Group, PendingRead } from "./group.ts";
import type { Groups } from "./groups.ts";
import type { LedgerAnswer, PeerRequest } from "./messages.ts";
import type { Reply } from "./reply.ts";
import { overdue } from "./submission.ts";

type ReadRequest = Extract<PeerRequest, { kind: "read" }>;
type InspectRequest = Extract<PeerRequest, { kind: "inspect" }>;

export class Reads {
  readonly #context: LedgerContext;
  readonly #groups: Groups;
  readonly #answer: (reply: Reply, answer: LedgerAnswer) => void;
  readonly #deadlines = new Deadlines<PendingRead>();
  #tokens = 0;

  constructor(
    context: LedgerContext,
    groups: Groups,
    answer: (reply: Reply, answer: LedgerAnswer) => void,
  ) {
    this.#context = context;
    this.#groups = groups;
    this.#answer = answer;
  }

  get size(): number {
    return this.#deadlines.size;
  }

  nextDeadline(): number | null {
    return this.#deadlines.next();
  }

  /** Whether a read of this level may be answered by a replica. */
  readableHere(group: Group, request: ReadRequest): boolean {
    const { app, replica } = group;
    if (replica.state.status === "retired" || app.kind !== "job") return false;
    if (app.state.status === "ABSENT") return false;
    switch (request.level) {
      case "EVENTUAL":
        return true;
      case "SESSION":
        return app.appliedSeq >= request.minSeq || !this.#context.options.rules.node.sessionsWait;
      case "BOUNDED_STALENESS":
        return this.#context.now - group.freshAt <= request.staleMs;
      case "STRONG":
        return false;
    }
  }

  read(group: Group, reply: Reply, request: ReadRequest | InspectRequest, deadline: number): void {
    if (
      request.kind === "read" &&
      request.level !== "STRONG" &&
      this.readableHere(group, request)
    ) {
      this.#answerJob(group, reply);
      return;
    }
    const pending = { group, token: ++this.#tokens, reply, request, deadline };
    group.reads.set(pending.token, pending);
    this.#deadlines.set(pending, deadline);
    this.#groups.step(group, { kind: "read", token: pending.token });
  }

  /**
   * A quorum has confirmed us, so the state here is what a strong read may see; or we do not lead. A
   * read that this node cannot answer is returned, to be sent on.
   */
  onRead(group: Group, token: number, ready: boolean): PendingRead | null {
    const pending = group.reads.get(token);
    if (pending === undefined) return null;
    group.reads.delete(token);
    this.#deadlines.delete(pending);
    // An empty group exists because a job was promised: its first entry is on the way, so the job must not be denied.
    // The read retries until it is there. (IDEM-22)
    const empty = group.app.kind === "job" && group.app.state.status === "ABSENT";
    if (!ready || empty) return pending;
    this.refresh(group, pending.deadline);
    this.#answerJob(group, pending.reply);
    return null;
  }

  /**
   * Marks the group as up to date with everything the authority knew when a request with this deadline was made.
   * (SESS-3)
   */
  refresh(group: Group, deadline: number): void {
    const askedAt = deadline - this.#context.options.config.requestTimeoutMs;
    group.freshAt = Math.max(group.freshAt, askedAt);
  }

  /** Removes and returns all who wait for this group here. */
  releaseAll(group: Group): readonly PendingRead[] {
    const released = [...group.reads.values()];
    group.reads.clear();
    for (const pending of released) this.#deadlines.delete(pending);
    return released;
  }

  onTick(now: number): void {
    for (const { group, token, reply, request } of this.#deadlines.takeDue(now)) {
      group.reads.delete(token);
      this.#answer(reply, overdue(request, "no quorum has confirmed this primary in time"));
    }
  }

  #answerJob(group: Group, reply: Reply): void {
    const { app, replica, id } = group;
    const { primary, knownView: view, members } = replica.state;
    if (app.kind === "registered") {
      const bytes = app.application.snapshot();
      this.#answer(reply, { kind: "state", group: id, seq: app.appliedSeq, view, bytes });
    }
    if (app.kind !== "job") return;
    const { state } = app;
    const servedBy = this.#context.self;
    this.#answer(reply, {
      ...{ kind: "job", state, archived: false, servedBy, primary, view, members },
    });
  }
}

/** A replica that does not know the age of its state asks the primary; the answer serves later reads too. */
export function authoritative<Kind extends PeerRequest>(request: Kind): Kind {
  const bounded = request.kind === "read" && request.level === "BOUNDED_STALENESS";
  return bounded ? { ...request, level: "STRONG" } : request;
}
