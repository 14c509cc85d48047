/** The attempts of a task, from its history: who had each, for how long, and what became of it. */

import type { TaskEvent, TaskFailure } from "../../src/queue/api/types.ts";

export interface Attempt {
  readonly attempt: number;
  readonly node: string | null;
  readonly assignedAt: string;
  readonly startedAt: string | null;
  readonly endedAt: string | null;
  /** "completed", "failed", why it was taken back; null while it goes on. */
  readonly outcome: string | null;
  readonly error: TaskFailure | null;
}

export function attemptsOf(events: readonly TaskEvent[]): readonly Attempt[] {
  const attempts: Attempt[] = [];
  for (const event of events) {
    const last = attempts.at(-1);
    if (event.event_type === "assigned") {
      attempts.push({
        attempt: event.attempt_id ?? attempts.length + 1,
        node: event.node_id,
        assignedAt: event.timestamp,
        startedAt: null,
        endedAt: null,
        outcome: null,
        error: null,
      });
    } else if (last !== undefined && last.outcome === null) {
      attempts[attempts.length - 1] = { ...last, ...changeBy(event) };
    }
  }
  return attempts;
}

function changeBy(event: TaskEvent): Partial<Attempt> {
  switch (event.event_type) {
    case "started":
      return { startedAt: event.timestamp };
    case "completed":
    case "failed":
    case "reassigned":
    case "cancelled":
      return { endedAt: event.timestamp, outcome: outcomeOf(event), error: errorOf(event.details) };
    default:
      return {};
  }
}

const REASONS: Readonly<Record<string, string>> = {
  released: "handed back by its node",
  lost: "lost with its node",
  expired: "lease ran out",
};

function outcomeOf({ event_type: type, details }: TaskEvent): string {
  const { reason } = fields(details);
  return (typeof reason === "string" ? REASONS[reason] : undefined) ?? type;
}

/** An end holds the error itself, a try that is followed by another holds it beside its reason. */
export function errorOf(details: unknown): TaskFailure | null {
  const { error, message } = fields(details);
  if (typeof fields(error)["message"] === "string") return error as TaskFailure;
  return typeof message === "string" ? (details as TaskFailure) : null;
}

function fields(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}
