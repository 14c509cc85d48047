/**
 * A node whose own log is ahead of its clock waits before it serves: until the clock has caught up, peers
 * refuse the times it would write, and so would it refuse its own. (HLC-5)
 */

/** How often a clock that is behind is looked at again: it may be set right at any time. */
const LOOK_MS = 1_000;

interface ClockWait {
  /** How far the clock is behind now; 0 when the node may serve. */
  readonly behindMs: () => number;
  readonly pause: (ms: number) => Promise<void>;
  /** Called once, when there is something to wait for. */
  readonly onBehind: (behindMs: number) => void;
}

export async function waitForClock({ behindMs, pause, onBehind }: ClockWait): Promise<void> {
  let left = behindMs();
  if (left > 0) onBehind(left);
  for (; left > 0; left = behindMs()) await pause(Math.min(left, LOOK_MS));
}
