/**
 * Control plane activity as an OpenTelemetry trace: the run, its workflows, and the phases of each workflow (prepare,
 * set up, load with the stages of its plan, tear down). Actions of a cluster on a job are events of the run. Sent when
 * the run has finished. (opentelemetry-proto, trace.proto; JSON with ids in hexadecimal)
 */

import { createHash } from "node:crypto";
import type { RunSummary, WorkflowSummary } from "../../core/load/results/model.ts";
import type { WorkflowPhase } from "../reporter.ts";
import { attributesOf, nanos } from "./otlp.ts";

/** Spans per trace: more than a workflow file produces, less than a collector minds. */
export const SPANS_MAX = 2_000;

const INTERNAL = 1;
const STATUS_OK = 1;
const STATUS_ERROR = 2;

interface Span {
  readonly name: string;
  readonly fromMs: number;
  readonly toMs: number;
  readonly attributes: Readonly<Record<string, string>>;
  readonly problem: string | null;
  readonly events: readonly SpanEvent[];
  readonly children: readonly Span[];
}

interface SpanEvent {
  readonly atMs: number;
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
}

interface SpanRequest {
  readonly body: unknown;
  readonly spans: number;
  /** Spans dropped because of the limit. */
  readonly leftOut: number;
}

export function spansRequest(
  summary: RunSummary,
  labels: Readonly<Record<string, string>>,
  phases: readonly WorkflowPhase[],
): SpanRequest {
  const identity = summary.runId ?? `${summary.name} ${summary.startedAt}`;
  const all = encoded(runSpan(summary, phases), identity);
  const spans = all.slice(0, SPANS_MAX);
  const body = {
    resourceSpans: [
      {
        resource: { attributes: attributesOf({ "service.name": "hyperscale", ...labels }) },
        scopeSpans: [{ scope: { name: "hyperscale" }, spans }],
      },
    ],
  };
  return { body, spans: spans.length, leftOut: all.length - spans.length };
}

function runSpan(summary: RunSummary, phases: readonly WorkflowPhase[]): Span {
  const { cluster, reasons, startedAt, verdict } = summary;
  const beganMs = Date.parse(startedAt);
  const endMs = beganMs + summary.durationSeconds * 1_000;
  const timeline = (summary.events ?? []).map(({ atSeconds, kind, text, workflow }) => ({
    ...{ atMs: beganMs + atSeconds * 1_000, name: kind },
    attributes: { text, ...(workflow === null ? {} : { workflow }) },
  }));
  const changes = (cluster?.changes ?? []).map(({ at, by, what }) => ({
    ...{ atMs: Date.parse(at), name: what, attributes: { gate: by } },
  }));
  const names = new Set(summary.workflows.map(({ name }) => name));
  // A mix has phases and its flows have metrics; workflows that measure nothing have phases only.
  const others = new Set(phases.map(({ workflow }) => workflow).filter((one) => !names.has(one)));
  const children = [
    ...waySpans(changes),
    ...summary.workflows.map((one) => workflowSpan(one, beganMs, phasesOf(one.name, phases))),
    ...[...others].map((name) => spanOver(name, phasesOf(name, phases))),
  ];
  const ends = [...children.map(({ toMs }) => toMs), ...changes.map(({ atMs }) => atMs), endMs];
  return {
    name: "run",
    fromMs: Math.min(beganMs, ...changes.map(({ atMs }) => atMs)),
    toMs: Math.max(...ends),
    attributes: {
      ...{ name: summary.name, verdict },
      ...(cluster === undefined ? {} : { job: cluster.jobId }),
    },
    problem: verdict === "passed" ? null : (reasons[0] ?? verdict),
    events: [...changes, ...timeline].sort((a, b) => a.atMs - b.atMs),
    children,
  };
}

/** Path of a job through its gates: each part from the first event of one change to the last of another. */
const WAY = [
  ["queue", "submitted", "dispatched"],
  ["dispatch", "dispatched", "accepted"],
  ["begin", "accepted", "started"],
  ["run in datacenters", "started", "datacenter ended"],
  ["merge", "datacenter ended", "ended"],
] as const;

function waySpans(changes: readonly SpanEvent[]): Span[] {
  return WAY.flatMap(([name, from, to]) => {
    const begins = changes.filter((one) => isChange(one, from));
    const end = changes.findLast((one) => isChange(one, to));
    // With several datacenters the last one makes the result.
    const begin = name === "merge" ? begins.at(-1) : begins[0];
    if (begin === undefined || end === undefined) return [];
    // Clocks of two gates differ.
    const toMs = Math.max(begin.atMs, end.atMs);
    const attributes = { ...end.attributes };
    return [
      { name, fromMs: begin.atMs, toMs, attributes, problem: null, events: [], children: [] },
    ];
  });
}

/** A location may follow the name: "accepted: eu1". */
function isChange({ name }: SpanEvent, change: string): boolean {
  return name === change || name.startsWith(`${change}: `);
}

function phasesOf(name: string, phases: readonly WorkflowPhase[]): readonly WorkflowPhase[] {
  return phases.filter(({ workflow }) => workflow === name);
}

/** A workflow with phases only. */
function spanOver(name: string, phases: readonly WorkflowPhase[]): Span {
  const children = phases.map((phase) => phaseSpan(phase));
  return {
    name: `workflow ${name}`,
    fromMs: Math.min(...children.map(({ fromMs }) => fromMs)),
    toMs: Math.max(...children.map(({ toMs }) => toMs)),
    attributes: { workflow: name },
    problem: children.find(({ problem }) => problem !== null)?.problem ?? null,
    events: [],
    children,
  };
}

function workflowSpan(
  { elapsedSeconds, error, load, name, startedAtSeconds, status }: WorkflowSummary,
  beganMs: number,
  phases: readonly WorkflowPhase[],
): Span {
  const startedMs = beganMs + startedAtSeconds * 1_000;
  const children = phases.map((phase) => phaseSpan(phase));
  return {
    name: `workflow ${name}`,
    fromMs: Math.min(startedMs, ...children.map(({ fromMs }) => fromMs)),
    toMs: Math.max(startedMs + elapsedSeconds * 1_000, ...children.map(({ toMs }) => toMs)),
    attributes: { workflow: name, load, status },
    problem: error ?? (status === "failed" ? status : null),
    events: [],
    children,
  };
}

function phaseSpan({ fromMs, name, problem, stages, toMs, workflow }: WorkflowPhase): Span {
  const attributes = { workflow };
  return {
    ...{ name, fromMs, toMs, attributes, problem },
    events: [],
    children: stages.map((stage) => ({
      ...{ ...stage, attributes, problem: null },
      ...{ events: [], children: [] },
    })),
  };
}

/** Ids are derived from the run, so that sending it again gives the same trace. Parents come before their children. */
function encoded(root: Span, identity: string): unknown[] {
  const traceId = idOf(identity, 16);
  const spans: unknown[] = [];
  const add = (span: Span, parentSpanId: string): void => {
    const spanId = idOf(`${identity} ${spans.length}`, 8);
    const { problem } = span;
    spans.push({
      ...{ traceId, spanId, parentSpanId, name: span.name, kind: INTERNAL },
      ...{ startTimeUnixNano: nanos(span.fromMs), endTimeUnixNano: nanos(span.toMs) },
      attributes: attributesOf(span.attributes),
      events: span.events.map(({ atMs, attributes, name }) => ({
        ...{ timeUnixNano: nanos(atMs), name, attributes: attributesOf(attributes) },
      })),
      status: problem === null ? { code: STATUS_OK } : { code: STATUS_ERROR, message: problem },
    });
    for (const child of span.children) add(child, spanId);
  };
  add(root, "");
  return spans;
}

function idOf(text: string, bytes: number): string {
  return createHash("sha256")
    .update(text)
    .digest("hex")
    .slice(0, 2 * bytes);
}
