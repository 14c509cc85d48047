/** Points as JSON objects: what NDJSON, webhooks and documents of databases hold. */

import type { Frame, Point } from "../reporter.ts";

interface PointObject {
  readonly at: string;
  readonly kind: Frame["kind"];
  readonly scope: string;
  readonly figure: string;
  readonly type: Point["kind"];
  readonly unit: string;
  readonly labels: Readonly<Record<string, string>>;
  /** A counter has `total` and `increment`, a gauge `value`, a distribution its figures. */
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

function numbersOf(point: Point): Readonly<Record<string, number>> {
  switch (point.kind) {
    case "counter":
      return { total: point.total, increment: point.increment };
    case "gauge":
      return { value: point.value };
    case "distribution":
      return { ...point.figures, sum: point.sum };
  }
}
