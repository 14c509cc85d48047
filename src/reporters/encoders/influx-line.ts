/**
 * InfluxDB's line protocol: one line per scope and set of labels, all its metrics as fields.
 *
 *   hyperscale_step,run=nightly,step=pay requests=120,latency_ms_p99=84.1 1763300000000
 */

import type { Frame } from "../reporter.ts";
import { remembered } from "./remembered.ts";
import { groupsOf, valuesOf } from "./values.ts";

/** Times are milliseconds: the sender must say so (`precision=ms`). */
export function influxLines(frame: Frame, prefix: string): InfluxLine[] {
  return groupsOf(frame).map(({ labels, points, scope }) => {
    let fields = "";
    for (const point of points)
      for (const { name, value } of valuesOf(point))
        fields += fields === "" ? `${name}=${value}` : `,${name}=${value}`;
    const series = seriesOf(frame.labels, labels, `${prefix}_${scope}`);
    return { text: `${series} ${fields}`, atMs: frame.atMs, points: points.length };
  });
}

/** The measurement and its tags. */
const seriesOf = remembered((run, labels, measurement) => {
  const tags = Object.entries({ ...run, ...labels })
    .filter(([, value]) => value !== "")
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `,${escaped(name)}=${escaped(value)}`);
  return `${escaped(measurement)}${tags.join("")}`;
});

interface InfluxLine {
  /** The line without its timestamp. */
  readonly text: string;
  readonly atMs: number;
  readonly points: number;
}

/** Line ends cannot be escaped; a trailing backslash would escape the next character. */
function escaped(text: string): string {
  return text
    .replace(/[\r\n\t]/g, " ")
    .replace(/\\+$/, "")
    .replace(/[ ,=]/g, "\\$&");
}
