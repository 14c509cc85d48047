/** Points as JSON objects for NDJSON, webhooks and document databases. */

import { chunks } from "../definition.ts";
import type { Payload } from "../pipeline/payload-queue.ts";
import type { Frame, Point } from "../reporter.ts";
import { remembered } from "./remembered.ts";

export interface PointObject {
  readonly at: string;
  readonly kind: Frame["kind"];
  readonly scope: string;
  readonly figure: string;
  readonly type: Point["kind"];
  readonly unit: string;
  readonly labels: Readonly<Record<string, string>>;
  /**
   * A counter has `total` and `increment`, a gauge `value`, a distribution its metrics; an empty one only its count.
   */
  readonly values: Readonly<Record<string, number>>;
}

export function framePoints(frame: Frame): PointObject[] {
  const at = new Date(frame.atMs).toISOString();
  return frame.points.map((point) => ({
    ...{ at, kind: frame.kind, scope: point.scope, figure: point.figure },
    ...{ type: point.kind, unit: point.unit },
    labels: { ...frame.labels, ...point.labels },
    values: numbersOf(point),
  }));
}

/** All points as lines: the same as `framePoints`, with labels serialised once for all points of a step. */
export function pointLines(frame: Frame): string {
  const head = `{"at":"${new Date(frame.atMs).toISOString()}","kind":"${frame.kind}","scope":"`;
  let text = "";
  for (const point of frame.points) {
    const { figure, kind, labels, scope, unit } = point;
    text += `${head}${scope}","figure":${JSON.stringify(figure)},"type":"${kind}","unit":"${unit}","labels":`;
    text += `${labelsText(frame.labels, labels)},"values":${JSON.stringify(numbersOf(point))}}\n`;
  }
  return text;
}

const labelsText = remembered((run, labels) => JSON.stringify({ ...run, ...labels }));

function numbersOf(point: Point): Readonly<Record<string, number>> {
  switch (point.kind) {
    case "counter":
      return { total: point.total, increment: point.increment };
    case "gauge":
      return { value: point.value };
    case "distribution":
      // An empty distribution has no percentiles: 0 ms would be the best of all answers.
      return point.figures.count === 0 ? { count: 0 } : { ...point.figures, sum: point.sum };
  }
}

/** Lists of points as JSON. */
export function pointBatches(frame: Frame, pointsMax: number): Payload[] {
  return chunks(framePoints(frame), pointsMax).map((points) => ({
    body: Buffer.from(JSON.stringify(points)),
    points: points.length,
  }));
}
