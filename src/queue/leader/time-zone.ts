/** Time zones of the IANA database, as this version of Node has them. */

import { QueueError } from "../../core/queue/errors.ts";
import type { OffsetAt } from "../../core/queue/zoned-cron.ts";

const FIELDS = ["year", "month", "day", "hour", "minute"] as const;
const MINUTE_MS = 60_000;

/** Offsets of a zone from UTC. */
export function offsetsOf(timeZone: string): OffsetAt {
  const format = formatOf(timeZone);
  return (utcMs) => {
    const minuteMs = Math.floor(utcMs / MINUTE_MS) * MINUTE_MS;
    const parts = new Map(format.formatToParts(minuteMs).map(({ type, value }) => [type, value]));
    const [year = 0, month = 1, day = 1, hour = 0, minute = 0] = FIELDS.map((field) =>
      Number(parts.get(field)),
    );
    return Date.UTC(year, month - 1, day, hour, minute) - minuteMs;
  };
}

function formatOf(timeZone: string): Intl.DateTimeFormat {
  const numeric = "numeric" as const;
  const fields = { year: numeric, month: numeric, day: numeric, hour: numeric, minute: numeric };
  try {
    return new Intl.DateTimeFormat("en-US", { timeZone, hourCycle: "h23", ...fields });
  } catch (error) {
    const problem = `time_zone: "${timeZone}" is no zone of the IANA database, as Europe/Berlin is`;
    throw new QueueError("INVALID_PARAMS", problem, { cause: error });
  }
}
