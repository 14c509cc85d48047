/** APIs of AWS, each request signed on its own. */

import { chunks, definePush, httpTarget, type ReporterDefinition } from "../definition.ts";
import { framePoints } from "../encoders/point-json.ts";
import { valuesOf } from "../encoders/values.ts";
import { type Ask, type HttpRequest, HttpTransport } from "../pipeline/http.ts";
import type { Payload } from "../pipeline/payload-queue.ts";
import type { Frame, Point } from "../reporter.ts";
import type { SettingValues } from "../settings.ts";
import { AWS_KEYS } from "./aws-keys.ts";
import { signedHeaders } from "./sigv4.ts";

const AWS_SETTINGS = {
  ...AWS_KEYS,
  region: { kind: "text", about: "the region that signs", default: "us-east-1" },
} as const;

const EVIDENCE = {
  evidence: "own stub",
  testedWith: "the published signature vectors, and a stub that checks signatures",
} as const;

interface SignedApi {
  readonly service: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly settings: SettingValues<typeof AWS_SETTINGS>;
  readonly refusal?: (answer: string) => string | null;
}

function signedTransport({ refusal, ...api }: SignedApi): HttpTransport {
  const request = ({ body }: Payload) => signedRequest(api, body);
  return new HttpTransport({ gzip: false, request, refusal, isBusy });
}

function signedRequest(
  { headers, service, settings, url }: Omit<SignedApi, "refusal">,
  body: Uint8Array,
): HttpRequest {
  const { region, ...credentials } = settings;
  const signing = { method: "POST", url, headers, body, region, service } as const;
  const signed = signedHeaders({ ...signing, credentials, at: new Date() });
  return { method: "POST", url, headers: signed, body };
}

/** Most AWS APIs report throttling with status 400. */
function isBusy(answer: string): boolean {
  return /Throttl|TooManyRequests|RequestLimitExceeded/.test(answer);
}

/** CloudWatch accepts 1,000 metrics per request; with names and values a body can reach 1 MB. */
const METRICS_MAX = 500;
/** Dimensions per metric. */
const DIMENSIONS_MAX = 30;

const cloudwatch = definePush({
  name: "cloudwatch",
  about: "Amazon CloudWatch metrics (PutMetricData)",
  target: "https://monitoring.eu-central-1.amazonaws.com",
  settings: {
    ...AWS_SETTINGS,
    namespace: { kind: "text", about: "the namespace of metrics", default: "hyperscale" },
  },
  ...EVIDENCE,
  transport: ({ settings, target }) =>
    signedTransport({
      ...{ service: "monitoring", url: httpTarget("cloudwatch", target), settings },
      headers: { "content-type": "application/x-www-form-urlencoded; charset=utf-8" },
    }),
  encode: (frame, { namespace }) => {
    const metrics = frame.points.flatMap((point) => cloudwatchMetrics(frame, point));
    return chunks(metrics, METRICS_MAX).map((some) => {
      const form = new URLSearchParams({
        ...{ Action: "PutMetricData", Version: "2010-08-01", Namespace: namespace },
      });
      for (const [at, fields] of some.entries())
        for (const [field, value] of Object.entries(fields))
          form.set(`MetricData.member.${at + 1}.${field}`, value);
      return { body: Buffer.from(form.toString()), points: some.length };
    });
  },
});

/** Sends the increment of a counter, so that sums over periods are right. */
function cloudwatchMetrics(frame: Frame, point: Point): Readonly<Record<string, string>>[] {
  const labels = Object.entries({ ...frame.labels, ...point.labels })
    .filter(([, value]) => value !== "")
    .slice(0, DIMENSIONS_MAX);
  const dimensions = Object.fromEntries(
    labels.flatMap(([name, value], at) => [
      [`Dimensions.member.${at + 1}.Name`, name],
      [`Dimensions.member.${at + 1}.Value`, value],
    ]),
  );
  const isCount = point.kind === "counter" && frame.kind === "interval";
  const scope = frame.kind === "summary" ? `summary_${point.scope}` : point.scope;
  return valuesOf(point).map(({ name, value }) => ({
    ...{ MetricName: `${scope}_${name}`, Timestamp: new Date(frame.atMs).toISOString() },
    ...{ Value: String(isCount ? point.increment : value), Unit: unitOf(point, name) },
    ...dimensions,
  }));
}

function unitOf({ figure, unit }: Point, name: string): string {
  if (name === `${figure}_count`) return "Count";
  const units = { ms: "Milliseconds", bytes: "Bytes", seconds: "Seconds", count: "Count" } as const;
  return unit in units ? units[unit as keyof typeof units] : "None";
}

/** Points per event; an entry is limited to 256 KB. */
const EVENT_POINTS_MAX = 100;

const eventbridge = definePush({
  name: "eventbridge",
  about: "Amazon EventBridge (PutEvents): points of a frame as events",
  target: "https://events.eu-central-1.amazonaws.com",
  settings: {
    ...AWS_SETTINGS,
    bus: { kind: "text", about: "the event bus", default: "default" },
  },
  ...EVIDENCE,
  transport: ({ settings, target }) =>
    signedTransport({
      ...{ service: "events", url: httpTarget("eventbridge", target), settings },
      headers: {
        "content-type": "application/x-amz-json-1.1",
        "x-amz-target": "AWSEvents.PutEvents",
      },
      // EventBridge answers 200 even when it rejected entries.
      refusal: (answer) => (/"FailedEntryCount":\s*[1-9]/.test(answer) ? answer : null),
    }),
  encode: (frame, { bus }) =>
    chunks(framePoints(frame), EVENT_POINTS_MAX).map((points) => ({
      body: Buffer.from(
        JSON.stringify({
          Entries: [
            {
              ...{ Source: "hyperscale", DetailType: frame.kind, EventBusName: bus },
              Time: Math.floor(frame.atMs / 1_000),
              Detail: JSON.stringify({ run: frame.labels, points }),
            },
          ],
        }),
      ),
      points: points.length,
    })),
});

const lambda = definePush({
  name: "lambda",
  about: "AWS Lambda: a function is invoked with the points, and not waited for",
  target: "https://lambda.eu-central-1.amazonaws.com",
  settings: {
    ...AWS_SETTINGS,
    function: { kind: "text", about: "its name or ARN" },
  },
  ...EVIDENCE,
  transport: ({ settings, target }) => {
    const path = `/2015-03-31/functions/${encodeURIComponent(settings.function)}/invocations`;
    return signedTransport({
      ...{ service: "lambda", url: httpTarget("lambda", target, path), settings },
      headers: { "content-type": "application/json", "x-amz-invocation-type": "Event" },
    });
  },
  encode: (frame) =>
    chunks(framePoints(frame), EVENT_POINTS_MAX).map((points) => ({
      body: Buffer.from(JSON.stringify({ kind: frame.kind, run: frame.labels, points })),
      points: points.length,
    })),
});

/** Records per request. */
const RECORDS_MAX = 100;

const timestream = definePush({
  name: "timestream",
  about: "Amazon Timestream for LiveAnalytics (WriteRecords): a record per point",
  target: "https://ingest.timestream.eu-central-1.amazonaws.com",
  settings: {
    ...AWS_SETTINGS,
    database: { kind: "text", about: "the database" },
    table: { kind: "text", about: "its table", default: "hyperscale_points" },
  },
  ...EVIDENCE,
  transport: ({ settings, target }) => {
    const cells = new TimestreamCells(httpTarget("timestream", target), settings);
    const request = async ({ body }: Payload, ask: Ask) => {
      const url = await cells.current(ask, Date.now());
      return signedRequest({ ...timestreamApi("WriteRecords", settings), url }, body);
    };
    return new HttpTransport({ gzip: false, request, isBusy });
  },
  encode: (frame, { database, table }) =>
    chunks(frame.points, RECORDS_MAX).map((points) => ({
      body: Buffer.from(
        JSON.stringify({
          ...{ DatabaseName: database, TableName: table },
          CommonAttributes: {
            Dimensions: dimensionsOf(frame.labels),
            ...{ Time: String(frame.atMs), TimeUnit: "MILLISECONDS", MeasureValueType: "MULTI" },
          },
          Records: points.map((point) => timestreamRecord(frame, point)),
        }),
      ),
      points: points.length,
    })),
});

function timestreamApi(action: string, settings: SignedApi["settings"]): Omit<SignedApi, "url"> {
  return {
    ...{ service: "timestream", settings },
    headers: {
      "content-type": "application/x-amz-json-1.0",
      "x-amz-target": `Timestream_20181101.${action}`,
    },
  };
}

/** Discovers the endpoint for records before the first write, and again when the cached one expires. */
class TimestreamCells {
  readonly #url: URL;
  readonly #settings: SignedApi["settings"];
  #found: { readonly url: URL; readonly untilMs: number } | undefined;

  constructor(url: URL, settings: SignedApi["settings"]) {
    this.#url = url;
    this.#settings = settings;
  }

  async current(ask: Ask, nowMs: number): Promise<URL> {
    if (this.#found !== undefined && nowMs < this.#found.untilMs) return this.#found.url;
    const api = timestreamApi("DescribeEndpoints", this.#settings);
    const answer = await ask(signedRequest({ ...api, url: this.#url }, Buffer.from("{}")));
    const { Endpoints = [] } = JSON.parse(answer) as DescribedEndpoints;
    const [first] = Endpoints;
    if (first === undefined) throw new Error(`it has no endpoint: ${answer}`);
    const url = new URL(`${this.#url.protocol}//${first.Address}`);
    this.#found = { url, untilMs: nowMs + first.CachePeriodInMinutes * 60_000 };
    return url;
  }
}

interface DescribedEndpoints {
  readonly Endpoints?: readonly {
    readonly Address: string;
    readonly CachePeriodInMinutes: number;
  }[];
}

function dimensionsOf(labels: Readonly<Record<string, string>>): unknown[] {
  return Object.entries(labels)
    .filter(([, value]) => value !== "")
    .map(([Name, Value]) => ({ Name, Value }));
}

/** The measure is "step" or "summary_step", with every value by name: "latency_ms_p99". */
function timestreamRecord({ kind }: Frame, point: Point): unknown {
  return {
    Dimensions: dimensionsOf({ ...point.labels, figure: point.figure }),
    MeasureName: kind === "summary" ? `summary_${point.scope}` : point.scope,
    MeasureValues: valuesOf(point).map(({ name: Name, value }) => ({
      ...{ Name, Value: String(value), Type: "DOUBLE" },
    })),
  };
}

export const aws: readonly ReporterDefinition[] = [cloudwatch, eventbridge, lambda, timestream];
