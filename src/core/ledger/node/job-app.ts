/** A job's group: its entries are job events, its state is their fold. */

import type { GroupSnapshot, LogEntry } from "../group/messages.ts";
import { type Condition, type ConditionFailure, failureForever } from "../job/condition.ts";
import { decodeEvent } from "../job/event-codec.ts";
import type { EventId, JobEvent } from "../job/events.ts";
import { advanceSeq, applyEvent } from "../job/fold.ts";
import { isForgotten } from "../job/forgotten.ts";
import type { JobId } from "../job/job-id.ts";
import { initialState, type JobState } from "../job/job-state.ts";
import { decodeJobState, encodeJobState } from "../job/state-codec.ts";
import { findInTrail } from "../job/trail.ts";
import type { EventOutcome } from "../job/verdict.ts";
import type { Outcome } from "./application.ts";
import type { NodeRules } from "./rules.ts";

export class JobApp {
  readonly kind = "job";
  state: JobState;
  readonly #rules: NodeRules;

  constructor(jobId: JobId, rules: NodeRules) {
    this.state = initialState(jobId);
    this.#rules = rules;
  }

  apply(entry: LogEntry): Outcome | null {
    if (entry.kind !== "op") {
      this.state = advanceSeq(this.state, entry.seq);
      return null;
    }
    const decoded = decodeEvent(entry.data);
    if (!decoded.ok) {
      // Checked before it was proposed; the same on every replica, whatever it is. (EVT-4)
      this.state = advanceSeq(this.state, entry.seq);
      return { kind: "rejected", reason: "UNREADABLE", seq: entry.seq, duplicate: false };
    }
    const event = this.#rules.conditionsJudged ? decoded.value : withoutCondition(decoded.value);
    const { state, outcome } = applyEvent(this.state, event, entry.seq, entry.data);
    this.state = this.#rules.oldEventsKnown ? state : withoutMemory(state);
    return outcomeOf(outcome, entry.seq);
  }

  /** Why an event with this condition cannot change the job any more, whatever comes; null: it may. */
  failureOf(condition: Condition | undefined, view: number): ConditionFailure | null {
    if (condition === undefined || !this.#rules.conditionsJudged) return null;
    return failureForever(this.state.changedSeq, condition, view);
  }

  /** Returns the outcome of an event that is already folded in, or null. */
  outcomeOf(eventId: string): Outcome | null {
    const { trail, appliedSeq: seq } = this.state;
    const entry = findInTrail(trail, eventId as EventId);
    if (entry === undefined) {
      const isKnown = isForgotten(trail.forgotten, eventId as EventId);
      return isKnown ? { kind: "repeated", reason: null, seq, duplicate: true } : null;
    }
    return { kind: entry.outcome, reason: entry.reason, seq: entry.seq, duplicate: true };
  }

  restore(snapshot: GroupSnapshot): boolean {
    const decoded = decodeJobState(snapshot.bytes);
    if (!decoded.ok || decoded.value.jobId !== this.state.jobId) return false;
    // The next place to be folded in is the one behind the snapshot.
    if (decoded.value.appliedSeq !== snapshot.seq) return false;
    this.state = decoded.value;
    return true;
  }

  snapshot(): Uint8Array {
    return encodeJobState(this.state);
  }

  get appliedSeq(): number {
    return this.state.appliedSeq;
  }
}

function withoutMemory(state: JobState): JobState {
  return { ...state, trail: { ...state.trail, forgotten: [] } };
}

function withoutCondition({ condition, ...event }: JobEvent): JobEvent {
  return event;
}

function outcomeOf(outcome: EventOutcome, seq: number): Outcome {
  switch (outcome.kind) {
    case "duplicate": {
      const { first } = outcome;
      return { kind: first.outcome, reason: first.reason, seq: first.seq, duplicate: true };
    }
    case "rejected":
      return { kind: "rejected", reason: outcome.reason, seq, duplicate: false };
    case "alreadyTerminal":
      return { kind: "alreadyTerminal", reason: outcome.status, seq, duplicate: false };
    default:
      return { kind: outcome.kind, reason: null, seq, duplicate: false };
  }
}
