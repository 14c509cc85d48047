/** Attempts of a task, derived from its history: where each ran, how long, and how it ended. */

import type { EventType, TaskState } from "./states.ts";

export interface AttemptEvent {
  readonly event_type: EventType;
  readonly node_id: string | null;
  readonly attempt_id: number | null;
  readonly timestamp: string;
  readonly details: unknown;
}

export interface Attempt {
  readonly attempt_id: number;
  readonly node_id: string | null;
  readonly assigned_at: string;
  /** Start of its execution; null when it never started. */
  readonly started_at: string | null;
  readonly ended_at: string | null;
  readonly outcome: "running" | "completed" | "failed" | "returned" | "cancelled";
  /** Why it did not complete, as recorded. */
  readonly error: unknown;
}

const OUTCOMES: Readonly<Partial<Record<EventType, Attempt["outcome"]>>> = {
  completed: "completed",
  failed: "failed",
  reassigned: "returned",
  cancelled: "cancelled",
};

/** In order; skips attempts that were never assigned. */
export function attemptsOf(events: readonly AttemptEvent[]): readonly Attempt[] {
  const attempts = new Map<number, Attempt>();
  for (const event of events) {
    const { attempt_id: id, event_type: type, timestamp } = event;
    if (id === null) continue;
    const before = attempts.get(id);
    if (type === "assigned") {
      const { node_id } = event;
      const begun = { attempt_id: id, node_id, assigned_at: timestamp, started_at: null };
      attempts.set(id, { ...begun, ended_at: null, outcome: "running", error: null });
      continue;
    }
    if (before === undefined || before.ended_at !== null) continue;
    const outcome = OUTCOMES[type];
    if (type === "started") attempts.set(id, { ...before, started_at: timestamp });
    else if (outcome !== undefined)
      attempts.set(id, { ...before, ended_at: timestamp, outcome, error: errorOf(event) });
  }
  return [...attempts.values()];
}

/** A final event is the error itself; a retry has it among its details, or only as a reason. */
function errorOf({ event_type, details }: AttemptEvent): unknown {
  if (event_type === "completed" || details === null || typeof details !== "object") return null;
  if ("error" in details && details.error !== null) return details.error;
  if ("message" in details) return details;
  return {
    message: "reason" in details ? (REASONS[String(details.reason)] ?? details.reason) : "",
  };
}

const REASONS: Readonly<Record<string, string>> = {
  released: "its node handed it back unfinished",
  snoozed: "it asked to be run later",
};

interface CountedAttempts {
  readonly attempt_id: number;
  readonly attempts_forgiven: number;
  readonly max_attempts: number;
  readonly state: TaskState;
}

/** "1/3": attempts begun of those allowed. A task that waits for its first has begun none; forgiven ones are extra. */
export function attemptText(task: CountedAttempts): string {
  const { attempt_id, attempts_forgiven, max_attempts, state } = task;
  const begun = state === "QUEUED" ? attempt_id - 1 : attempt_id;
  return `${begun}/${max_attempts + attempts_forgiven}`;
}
