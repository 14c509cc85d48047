/**
 * State transitions of a task as a table: which state may follow which, and by which event. (TQ-20)
 *
 *     submit ─► QUEUED ──claim──► RUNNING ──report──► SUCCEEDED | FAILED
 *                 │  ▲               │  │
 *                 │  └─ next attempt ┘  └──cancel──► CANCELLED
 *                 └──cancel──► CANCELLED
 *
 * The statements in src/queue/store/sql write only these; `checkHistory` verifies it afterwards from the events, and is
 * used by the database and chaos tests.
 */

export const TASK_STATES = ["QUEUED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED"] as const;
export type TaskState = (typeof TASK_STATES)[number];

export const EVENT_TYPES = [
  "created",
  "assigned",
  "started",
  "completed",
  "failed",
  "reassigned",
  "cancelled",
  "late_result",
  "lease_renewal_failed",
  "requeued",
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

export function isTerminal(state: TaskState): boolean {
  return state === "SUCCEEDED" || state === "FAILED" || state === "CANCELLED";
}

interface Move {
  readonly from: TaskState | null;
  readonly to: TaskState;
  readonly by: readonly EventType[];
}

/** Every legal transition. Back to QUEUED from a final state is a manual requeue, nothing else. */
const MOVES: readonly Move[] = [
  { from: null, to: "QUEUED", by: ["created"] },
  { from: "QUEUED", to: "RUNNING", by: ["assigned"] },
  { from: "QUEUED", to: "CANCELLED", by: ["cancelled"] },
  { from: "RUNNING", to: "SUCCEEDED", by: ["completed"] },
  { from: "RUNNING", to: "FAILED", by: ["failed"] },
  { from: "RUNNING", to: "QUEUED", by: ["failed", "reassigned"] },
  { from: "RUNNING", to: "CANCELLED", by: ["cancelled"] },
  { from: "FAILED", to: "QUEUED", by: ["requeued"] },
  { from: "CANCELLED", to: "QUEUED", by: ["requeued"] },
];

export function isLegalMove(from: TaskState | null, to: TaskState, by: EventType): boolean {
  return MOVES.some((move) => move.from === from && move.to === to && move.by.includes(by));
}

export interface HistoryEvent {
  readonly event_type: EventType;
  readonly old_state: TaskState | null;
  readonly new_state: TaskState | null;
  readonly attempt_id: number | null;
  readonly epoch: number;
}

/** Returns the first illegal transition of a task's history, or undefined when it is legal. */
export function checkHistory(events: readonly HistoryEvent[]): string | undefined {
  let state: TaskState | null = null;
  let attempt = 1;
  let epoch = 0;
  for (const [index, event] of events.entries()) {
    const at = `event ${index + 1} (${event.event_type})`;
    if (event.epoch < epoch) return `${at}: epoch ${event.epoch} writes after epoch ${epoch}`;
    epoch = event.epoch;
    if (isNote(event.event_type)) continue;
    if (event.old_state !== state)
      return `${at}: leaves ${event.old_state} but the task is ${state}`;
    if (event.event_type === "started") {
      if (state !== "RUNNING") return `${at}: starts while ${state}`;
      if (event.attempt_id !== attempt) return `${at}: attempt ${event.attempt_id}, not ${attempt}`;
      continue;
    }
    if (event.new_state === null || !isLegalMove(state, event.new_state, event.event_type)) {
      return `${at}: ${state} -> ${event.new_state} is not a legal move`;
    }
    if (event.event_type === "requeued") attempt++;
    if (event.attempt_id !== attempt) return `${at}: attempt ${event.attempt_id}, not ${attempt}`;
    if (state === "RUNNING" && event.new_state === "QUEUED") attempt++;
    state = event.new_state;
  }
  return state === null ? "no created event" : undefined;
}

/** Events that record something without moving the task. */
function isNote(type: EventType): boolean {
  return type === "late_result" || type === "lease_renewal_failed";
}
