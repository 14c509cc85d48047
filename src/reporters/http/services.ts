/** Services that accept metrics or events as JSON over HTTP; they differ in address, header and shape. */

import { chunks, definePush, httpTarget } from "../definition.ts";
import { otlpRequest } from "../encoders/otlp.ts";
import { spansRequest } from "../encoders/otlp-spans.ts";
import { framePoints } from "../encoders/point-json.ts";
import { groupsOf, valuesOf } from "../encoders/values.ts";
import { HttpTransport } from "../pipeline/http.ts";
import type { Payload } from "../pipeline/payload-queue.ts";
import type { Frame, Point } from "../reporter.ts";
import { ReporterError } from "../settings.ts";

type Headers = Readonly<Record<string, string>>;

function jsonTransport(url: URL, headers: Headers, gzip = true): HttpTransport {
  const all = { "content-type": "application/json", ...headers };
  return new HttpTransport({
    gzip,
    request: ({ body, to }) => ({
      ...{ method: "POST", headers: all, body },
      url: to === undefined ? url : new URL(to, url),
    }),
  });
}

/** Splits points into lists, each as one body. */
function payloads(
  points: readonly Point[],
  most: number,
  shape: (points: readonly Point[]) => unknown,
): Payload[] {
  return chunks(points, most).map((some) => ({
    body: Buffer.from(JSON.stringify(shape(some))),
    points: some.length,
  }));
}

/** "hyperscale.step.latency_ms.p99". */
function dotted(frame: Frame, point: Point, name: string): string {
  const prefix = frame.kind === "summary" ? "hyperscale.summary" : "hyperscale";
  const figure = name.slice(point.figure.length).replace("_", ".");
  return `${prefix}.${point.scope}.${point.figure}${figure}`;
}

const POINTS_MAX = 500;
/** Traces are sent to the path beside it. */
const METRICS_PATH = "/v1/metrics";

export const otlp = definePush({
  name: "otlp",
  about: "OpenTelemetry over HTTP (JSON), latencies as exponential histograms",
  target: "http://127.0.0.1:4318",
  settings: {
    header: {
      kind: "secret",
      about: 'one more header, such as "authorization: Bearer …"',
      optional: true,
    },
    spans: {
      kind: "switch",
      about: "also what the run did and when, as a trace, when it is over",
      default: "false",
    },
  },
  evidence: "own stub",
  testedWith:
    "its answers by a stub; metrics and spans read by protobufjs with the published schema",
  transport: ({ settings, target }) => {
    const [, name, value] = /^([^:]+):\s*(.*)$/s.exec(settings.header ?? "") ?? [];
    const more = name === undefined || value === undefined ? {} : { [name.trim()]: value };
    const url = httpTarget("otlp", target, METRICS_PATH);
    if (settings.spans && !url.pathname.endsWith(METRICS_PATH))
      throw new ReporterError(
        `report otlp: with spans the address has no path, or ${METRICS_PATH}`,
      );
    return jsonTransport(url, more);
  },
  atEnd: ({ labels, phases, summary }, { spans: wanted }) => {
    if (!wanted) return { payloads: [], leftOut: 0 };
    const { body, leftOut, spans } = spansRequest(summary, labels, phases);
    const payload = { body: Buffer.from(JSON.stringify(body)), points: spans, to: "traces" };
    return { payloads: [payload], leftOut };
  },
  encode: (frame) =>
    chunks(frame.points, POINTS_MAX).map((points) => ({
      body: Buffer.from(otlpRequest(frame, points)),
      points: points.length,
    })),
});

/** Numeric types of Datadog's metrics. (API v2, series) */
const DATADOG_TYPES = { count: 1, gauge: 3 } as const;

export const datadog = definePush({
  name: "datadog",
  about: "Datadog metrics API",
  target: "https://api.datadoghq.com",
  settings: { key: { kind: "secret", about: "the API key" } },
  evidence: "own stub",
  testedWith: "its answers by a stub; the shape is the documented one",
  transport: ({ settings, target }) =>
    jsonTransport(httpTarget("datadog", target, "/api/v2/series"), { "dd-api-key": settings.key }),
  encode: (frame) =>
    payloads(frame.points, POINTS_MAX, (points) => ({
      series: points.flatMap((point) => datadogSeries(frame, point)),
    })),
});

/** Datadog's count covers its interval, so counters are sent as increments. */
function datadogSeries(frame: Frame, point: Point): unknown[] {
  const tags = Object.entries({ ...frame.labels, ...point.labels }).map((pair) => pair.join(":"));
  const isCount = point.kind === "counter" && frame.kind === "interval";
  return valuesOf(point).map(({ name, value }) => ({
    metric: dotted(frame, point, name),
    type: isCount ? DATADOG_TYPES.count : DATADOG_TYPES.gauge,
    ...(isCount ? { interval: intervalSeconds(frame) } : {}),
    points: [
      { timestamp: Math.floor(frame.atMs / 1_000), value: isCount ? point.increment : value },
    ],
    tags,
  }));
}

function intervalSeconds({ atMs, fromMs }: Frame): number {
  return Math.max(1, Math.round((atMs - fromMs) / 1_000));
}

export const newrelic = definePush({
  name: "newrelic",
  about: "New Relic metric API",
  target: "https://metric-api.newrelic.com",
  settings: { key: { kind: "secret", about: "the licence key" } },
  evidence: "own stub",
  testedWith: "its answers by a stub; the shape is the documented one",
  transport: ({ settings, target }) =>
    jsonTransport(httpTarget("newrelic", target, "/metric/v1"), { "api-key": settings.key }),
  encode: (frame) =>
    payloads(frame.points, POINTS_MAX, (points) => [
      {
        common: { timestamp: frame.atMs, attributes: frame.labels },
        metrics: points.flatMap((point) => newrelicMetrics(frame, point)),
      },
    ]),
});

function newrelicMetrics(frame: Frame, point: Point): unknown[] {
  const isCount = point.kind === "counter" && frame.kind === "interval";
  return valuesOf(point).map(({ name, value }) => ({
    name: dotted(frame, point, name),
    attributes: point.labels,
    ...(isCount
      ? {
          type: "count",
          value: point.increment,
          "interval.ms": Math.max(1, frame.atMs - frame.fromMs),
        }
      : { type: "gauge", value }),
  }));
}

export const honeycomb = definePush({
  name: "honeycomb",
  about: "Honeycomb events: one per scope and set of labels",
  target: "https://api.honeycomb.io",
  settings: {
    key: { kind: "secret", about: "the API key" },
    dataset: { kind: "text", about: "the dataset", default: "hyperscale" },
  },
  evidence: "own stub",
  testedWith: "its answers by a stub; the shape is the documented one",
  transport: ({ settings, target }) => {
    const path = `/1/batch/${encodeURIComponent(settings.dataset)}`;
    return jsonTransport(httpTarget("honeycomb", target, path), {
      "x-honeycomb-team": settings.key,
    });
  },
  encode: (frame) =>
    chunks(groupsOf(frame), POINTS_MAX).map((groups) => ({
      body: Buffer.from(
        JSON.stringify(
          groups.map(({ labels, points, scope }) => ({
            time: new Date(frame.atMs).toISOString(),
            data: {
              ...{ ...frame.labels, ...labels, scope },
              ...Object.fromEntries(
                points.flatMap(valuesOf).map(({ name, value }) => [name, value]),
              ),
            },
          })),
        ),
      ),
      points: groups.reduce((sum, { points }) => sum + points.length, 0),
    })),
});

export const webhook = definePush({
  name: "webhook",
  about: "any address: the points of a frame as one JSON object",
  target: "https://example.org/hook",
  settings: {
    token: { kind: "secret", about: "sent as bearer token", optional: true },
    points: { kind: "whole", about: "points of one request", default: "1000" },
  },
  evidence: "own stub",
  testedWith: "a stub",
  transport: ({ settings: { token }, target }) =>
    jsonTransport(
      httpTarget("webhook", target),
      token === undefined ? {} : { authorization: `Bearer ${token}` },
      false,
    ),
  encode: (frame, { points }) =>
    chunks(framePoints(frame), Math.max(1, points)).map((some) => ({
      body: Buffer.from(JSON.stringify({ kind: frame.kind, run: frame.labels, points: some })),
      points: some.length,
    })),
});
