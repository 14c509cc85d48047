/** Back-ends that accept lines of text: StatsD and its dialects, Graphite, InfluxDB's line protocol over sockets. */

import { definePush, type ReporterDefinition } from "../definition.ts";
import { influxLines } from "../encoders/influx-line.ts";
import { remembered } from "../encoders/remembered.ts";
import { valuesOf } from "../encoders/values.ts";
import {
  DATAGRAM_BYTES_MAX,
  linePayloads,
  socketAddress,
  socketTransport,
} from "../pipeline/socket.ts";
import type { Frame, Point } from "../reporter.ts";

const PREFIX = {
  kind: "text",
  about: "what every name begins with",
  default: "hyperscale",
} as const;

interface Line {
  readonly text: string;
  readonly points: number;
}

/**
 * "hyperscale.nightly.step.shop.pay.latency_ms_p99": formats without labels have them in the path, tags with their
 * names, or two series of one metric would become one. By the name of the value.
 */
function pathsOf(frame: Frame, point: Point, prefix: string): (name: string) => string {
  const kind = frame.kind === "summary" ? ".summary" : "";
  const [before, after] = partsOf(frame.labels, point.labels, point.scope);
  const start = `${pathPart(prefix)}${kind}.${before}`;
  return (name) => `${start}.${pathPart(name)}${after}`;
}

/** Path before and after the name of a value. */
const partsOf = remembered((run, labels, scope): readonly [before: string, after: string] => {
  const { error, outcome, protocol: _, result, status, ...rest } = labels;
  const { check, group, metric, step, workflow, ...tags } = rest;
  const tagged = Object.entries(tags).map((pair) => pair.join("_"));
  const named = [workflow, step, check, group, metric, ...tagged.sort()].filter(
    (part) => part !== undefined,
  );
  const counted = [error, outcome, result, status].filter((part) => part !== undefined);
  const before = [run["run"] ?? "run", scope, ...named].map(pathPart).join(".");
  return [before, counted.map((part) => `.${pathPart(part)}`).join("")];
});

const PLAIN = /^[A-Za-z0-9_-]+$/;

/** Dots separate parts, and other characters have a meaning in one of the dialects. */
function pathPart(text: string): string {
  return PLAIN.test(text) ? text : text.replace(/[^A-Za-z0-9_-]+/g, "_") || "_";
}

/** Counters as increments, everything else as it stands. (github.com/statsd/statsd, metric types) */
function statsdLines(frame: Frame, prefix: string): Line[] {
  return frame.points.flatMap((point) => {
    const path = pathsOf(frame, point, prefix);
    if (point.kind === "counter" && frame.kind === "interval") {
      const { figure, increment } = point;
      return increment === 0 ? [] : [{ text: `${path(figure)}:${increment}|c`, points: 1 }];
    }
    return valuesOf(point).map(({ name, value }, at) => ({
      text: gaugeText(path(name), value, ""),
      points: at === 0 ? 1 : 0,
    }));
  });
}

/** StatsD reads a sign as a relative change: a negative value is set from 0, in the same datagram. */
function gaugeText(name: string, value: number, tags: string): string {
  const text = `${name}:${value}|g${tags}`;
  return value < 0 ? `${name}:0|g${tags}\n${text}` : text;
}

function dogstatsdLines(frame: Frame, prefix: string): Line[] {
  const start = frame.kind === "summary" ? `${prefix}.summary` : prefix;
  return frame.points.flatMap((point) => {
    const labels = Object.entries({ ...frame.labels, ...point.labels });
    const tags = labels.map(([name, value]) => `${tagPart(name)}:${tagPart(value)}`).join(",");
    const isCount = point.kind === "counter" && frame.kind === "interval";
    if (isCount && point.increment === 0) return [];
    return valuesOf(point).map(({ name, value }, at) => ({
      text: isCount
        ? `${start}.${point.scope}.${name}:${point.increment}|c|#${tags}`
        : gaugeText(`${start}.${point.scope}.${name}`, value, `|#${tags}`),
      points: at === 0 ? 1 : 0,
    }));
  });
}

function tagPart(text: string): string {
  return text.replace(/[,|#\s:]+/g, "_");
}

function graphiteLines(frame: Frame, prefix: string): Line[] {
  const at = Math.floor(frame.atMs / 1_000);
  const lines: Line[] = [];
  for (const point of frame.points) {
    const path = pathsOf(frame, point, prefix);
    for (const [first, { name, value }] of valuesOf(point).entries())
      lines.push({ text: `${path(name)} ${value} ${at}`, points: first === 0 ? 1 : 0 });
  }
  return lines;
}

/** Batch size of a stream. */
const BATCH_BYTES = 64 * 1_024;

interface Dialect {
  readonly name: string;
  readonly about: string;
  readonly port: number;
  readonly protocol: "udp" | "tcp";
  readonly lines: (frame: Frame, prefix: string) => readonly Line[];
  readonly evidence: ReporterDefinition["evidence"];
  readonly testedWith: string;
}

function defineLines(dialect: Dialect): ReporterDefinition {
  const { about, evidence, lines, name, port, protocol, testedWith } = dialect;
  return definePush({
    ...{ name, about, evidence, testedWith },
    target: `${protocol}://127.0.0.1:${port}`,
    settings: { prefix: PREFIX },
    transport: ({ target }) => socketTransport(socketAddress(name, target, protocol, port)),
    // Frames larger than a datagram are split again, so that a stream can be selected with tcp://.
    encode: (frame, { prefix }) =>
      linePayloads(lines(frame, prefix), protocol === "udp" ? DATAGRAM_BYTES_MAX : BATCH_BYTES),
  });
}

const influxLinesWithTime = (frame: Frame, prefix: string): Line[] =>
  influxLines(frame, prefix).map(({ atMs, points, text }) => ({
    text: `${text} ${atMs}000000`,
    points,
  }));

export const definitions: readonly ReporterDefinition[] = [
  defineLines({
    ...{ name: "statsd", about: "StatsD over UDP or TCP", port: 8125, protocol: "udp" },
    ...{ lines: statsdLines, evidence: "real server", testedWith: "statsd 0.9" },
  }),
  defineLines({
    ...{ name: "dogstatsd", about: "DogStatsD: StatsD with tags", port: 8125, protocol: "udp" },
    ...{ lines: dogstatsdLines, evidence: "own stub", testedWith: "a reader of its lines" },
  }),
  defineLines({
    ...{ name: "netdata", about: "Netdata's StatsD collector", port: 8125, protocol: "udp" },
    ...{ lines: statsdLines, evidence: "real server", testedWith: "netdata 1.37" },
  }),
  defineLines({
    ...{ name: "telegraf-statsd", about: "Telegraf's StatsD input", port: 8125, protocol: "udp" },
    ...{ lines: dogstatsdLines, evidence: "own stub", testedWith: "a reader of its lines" },
  }),
  defineLines({
    ...{ name: "graphite", about: "Graphite's plain text", port: 2003, protocol: "tcp" },
    ...{
      lines: graphiteLines,
      evidence: "real server",
      testedWith: "carbon 1.1 and VictoriaMetrics 1.79",
    },
  }),
  defineLines({
    ...{ name: "telegraf", about: "Telegraf's socket listener: Influx lines", port: 8094 },
    ...{ protocol: "udp", lines: influxLinesWithTime },
    ...{ evidence: "real server", testedWith: "the UDP listener of influxdb 1.6" },
  }),
];
