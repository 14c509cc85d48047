/** Checks messages of executor cores. Job code shares the channel of its core and can send anything. */

import type { RelayedEvent } from "../../core/cluster/messages.ts";
import { bounded } from "../../core/cluster/worker/bounded-event.ts";
import { event as schema } from "../../wire/messages/worker.ts";
import { misfitOf } from "../../wire/misfit.ts";

/** Events of local runs, which a worker drops. */
const LOCAL: readonly unknown[] = ["calls", "traced", "declared"];

/** Returns why a message is not an event of a core; null when it is one. */
export function eventProblem(message: unknown): string | null {
  if (typeof message !== "object" || message === null) return "is not an object";
  if (LOCAL.includes((message as { readonly kind?: unknown }).kind)) return null;
  try {
    const misfit = misfitOf(schema.shape, bounded(message as RelayedEvent));
    return misfit === null ? null : [misfit.path.join("."), misfit.problem].join(" ").trim();
  } catch {
    return "cannot be read";
  }
}
