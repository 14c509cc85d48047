/**
 * InfluxDB's line protocol: one line per scope and set of labels, all its figures as fields.
 *
 *   hyperscale_step,run=nightly,step=pay requests=120,latency_ms_p99=84.1 1763300000000
 */

import type { Frame } from "../reporter.ts";
import { groupsOf, valuesOf } from "./values.ts";

/** Times are milliseconds: whoever sends the lines says so (`precision=ms`). */
export function influxLines(frame: Frame, prefix: string): InfluxLine[] {
  return groupsOf(frame).map(({ labels, points, scope }) => {
    const tags = Object.entries({ ...frame.labels, ...labels })
      .filter(([, value]) => value !== "")
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, value]) => `,${escaped(name)}=${escaped(value)}`);
    const fields = points.flatMap(valuesOf).map(({ name, value }) => `${name}=${value}`);
    const measurement = escaped(`${prefix}_${scope}`);
    return {
      text: `${measurement}${tags.join("")} ${fields.join(",")}`,
      atMs: frame.atMs,
      points: points.length,
    };
  });
}

interface InfluxLine {
  /** Without its time. */
  readonly text: string;
  readonly atMs: number;
  readonly points: number;
}

/** Line ends cannot be escaped; a backslash at the end of a value would escape what follows. */
function escaped(text: string): string {
  return text
    .replace(/[\r\n\t]/g, " ")
    .replace(/\\+$/, "")
    .replace(/[ ,=]/g, "\\$&");
}
