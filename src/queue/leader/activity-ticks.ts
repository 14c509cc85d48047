/** Closes the activity windows of a leader, while it leads. */

import { ACTIVITY_TICK_MS } from "../../core/queue/activity.ts";
import type { Background } from "../../host/background.ts";
import type { Reader } from "../store/reader.ts";
import type { Leader } from "./leader.ts";
import type { QueueMetrics } from "./metrics.ts";

interface ActivityHost {
  readonly reader: Reader;
  readonly metrics: QueueMetrics;
  readonly background: Background;
}

export function tickActivity({ reader, metrics, background }: ActivityHost, leader: Leader): void {
  const { activity } = metrics;
  activity.begin(Date.now());
  const ticks = background.every("count what the queue did", ACTIVITY_TICK_MS, async () => {
    const counts = await reader.counts().catch(() => null);
    // The next leader, which may be this node again, counts from here on.
    if (leader.writer.ended) {
      ticks.cancel();
      return;
    }
    const depth = counts === null ? null : { queued: counts.QUEUED, running: counts.RUNNING };
    activity.tick(Date.now(), depth);
  });
}
