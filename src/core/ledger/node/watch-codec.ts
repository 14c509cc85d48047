/** Binary encoding of watches: the client's request and the items it receives. Total like all decoders. */

import { assertNever } from "../../base/assert.ts";
import type { ByteReader, ByteWriter } from "../../base/bytes.ts";
import { NODE_ID_BYTES_MAX, type NodeId } from "../../base/ids.ts";
import { decodeEvent, encodeEvent } from "../job/event-codec.ts";
import type { JobId } from "../job/job-id.ts";
import { EVENT_BYTES_MAX, JOB_ID_BYTES_MAX } from "../job/limits.ts";
import { readEvent } from "./request-codec.ts";
import { WATCH_PLACES_MAX, type WatchItem, type WatchPlace, type WatchRequest } from "./watch.ts";

const TEXT_BYTES_MAX = 1_024;
/** Nodes that may know a job: every node of the ledger. */
const NODES_MAX = 1_024;
const ITEMS: readonly WatchItem["kind"][] = [
  "event",
  "behind",
  "from",
  "archived",
  "elsewhere",
  "refused",
  "stop",
];

export function writeWatch(out: ByteWriter, request: WatchRequest | null): void {
  out.uint8(request === null ? 0 : 1);
  if (request === null) return;
  const { scope, after, since } = request;
  out.uint8(scope.kind === "job" ? 0 : 1);
  out.text(scope.kind === "job" ? scope.jobId : scope.prefix);
  out.uint8(since === "start" ? 0 : 1);
  out.varint(after.length);
  for (const { jobId, seq } of after) {
    out.text(jobId);
    out.varint(seq + 1);
  }
}

export function readWatch(from: ByteReader): WatchRequest | null {
  if (!flag(from)) return null;
  const many = flag(from);
  const text = from.text(JOB_ID_BYTES_MAX);
  const since = flag(from) ? "now" : "start";
  const count = from.varint();
  if (count > WATCH_PLACES_MAX) from.fail("too many places");
  const after: WatchPlace[] = [];
  for (let i = 0; i < count && !from.failed; i++) {
    after.push({ jobId: from.text(JOB_ID_BYTES_MAX) as JobId, seq: from.varint() - 1 });
  }
  const scope = many
    ? ({ kind: "jobs", prefix: text } as const)
    : ({ kind: "job", jobId: text as JobId } as const);
  return { scope, after, since };
}

function flag(from: ByteReader): boolean {
  const value = from.uint8();
  if (value > 1) from.fail(`${value} where 0 or 1 is expected`);
  return value === 1;
}

export function writeItem(out: ByteWriter, item: WatchItem): void {
  out.uint8(ITEMS.indexOf(item.kind));
  switch (item.kind) {
    case "event":
      out.varint(item.seq);
      out.varint(item.view);
      out.bytes(encodeEvent(item.event));
      out.text(item.outcome);
      out.text(item.reason ?? "");
      return;
    case "behind":
    case "from":
      out.text(item.jobId);
      out.varint(item.seq + 1);
      return;
    case "archived":
      out.text(item.jobId);
      return;
    case "stop":
      out.bytes(encodeEvent(item.event));
      return;
    case "elsewhere":
      out.text(item.jobId);
      out.varint(item.nodes.length);
      for (const node of item.nodes) out.text(node);
      return;
    case "refused":
      out.text(item.why);
      return;
    default:
      assertNever(item);
  }
}

export function readItem(from: ByteReader): WatchItem {
  const kind = ITEMS[from.uint8()];
  const jobId = (): JobId => from.text(JOB_ID_BYTES_MAX) as JobId;
  switch (kind) {
    case "event":
      return readEventItem(from);
    case "behind":
    case "from":
      return { kind, jobId: jobId(), seq: from.varint() - 1 };
    case "archived":
      return { kind, jobId: jobId() };
    case "elsewhere":
      return { kind, jobId: jobId(), nodes: readNodes(from) };
    case "refused":
      return { kind, why: from.text(TEXT_BYTES_MAX) };
    case "stop": {
      const event = readEvent(from);
      return { kind, jobId: event.jobId, event };
    }
    default:
      from.fail("an unknown value of a fixed list");
      return { kind: "refused", why: "" };
  }
}

function readEventItem(from: ByteReader): WatchItem {
  const seq = from.varint();
  const view = from.varint();
  const decoded = decodeEvent(from.bytes(EVENT_BYTES_MAX));
  const outcome = from.text(TEXT_BYTES_MAX);
  const reason = from.text(TEXT_BYTES_MAX);
  if (!decoded.ok) {
    from.fail(decoded.problem);
    return { kind: "refused", why: decoded.problem };
  }
  const event = decoded.value;
  const said = { outcome, reason: reason === "" ? null : reason };
  return { kind: "event", jobId: event.jobId, seq, view, event, ...said };
}

function readNodes(from: ByteReader): NodeId[] {
  const count = from.varint();
  if (count > NODES_MAX) from.fail("too many nodes");
  const nodes: NodeId[] = [];
  for (let i = 0; i < count && !from.failed; i++)
    nodes.push(from.text(NODE_ID_BYTES_MAX) as NodeId);
  return nodes;
}
