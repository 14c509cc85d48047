/** Binary encoding of requests from nodes and clients. */

import { assertNever } from "../../base/assert.ts";
import type { ByteReader, ByteWriter } from "../../base/bytes.ts";
import { NODE_ID_BYTES_MAX, type NodeId } from "../../base/ids.ts";
import { EVENT_ID_BYTES_MAX, GROUP_ID_BYTES_MAX, type GroupId } from "../group/messages.ts";
import { decodeEvent, encodeEvent } from "../job/event-codec.ts";
import type { JobEvent } from "../job/events.ts";
import type { JobId } from "../job/job-id.ts";
import {
  DC_ID_BYTES_MAX,
  EVENT_BYTES_MAX,
  JOB_DCS_MAX,
  JOB_ID_BYTES_MAX,
  JOB_SPEC_BYTES_MAX,
} from "../job/limits.ts";
import { KEY_BYTES_MAX } from "../keys/key.ts";
import { OPERATION_BYTES_MAX } from "./application.ts";
import { LEVELS, pick, put, readNodes, readTexts, writeTexts } from "./codec-parts.ts";
import { type PeerRequest, READ_LEVELS } from "./messages.ts";

const REQUESTS: readonly PeerRequest["kind"][] = [
  "submit",
  "append",
  "read",
  "replace",
  "found",
  "propose",
  "inspect",
];
const NO_EVENT = { kind: "JobCreated" } as JobEvent;

export function readEvent(from: ByteReader): JobEvent {
  const decoded = decodeEvent(from.bytes(EVENT_BYTES_MAX));
  if (decoded.ok) return decoded.value;
  from.fail(decoded.problem);
  return NO_EVENT;
}

export function writeRequest(out: ByteWriter, request: PeerRequest): void {
  put(out, REQUESTS, request.kind);
  switch (request.kind) {
    case "submit":
      out.text(request.key);
      out.bytes(request.spec);
      writeTexts(out, request.assignedDcs);
      return;
    case "append":
      out.bytes(encodeEvent(request.event));
      put(out, LEVELS, request.durability);
      return;
    case "read":
      out.text(request.jobId);
      put(out, READ_LEVELS, request.level);
      out.varint(request.minSeq + 1);
      out.varint(Math.floor(request.staleMs));
      return;
    case "propose":
      out.text(request.group);
      out.text(request.eventId);
      out.bytes(request.data);
      writeTexts(out, request.members);
      return;
    case "inspect":
      out.text(request.group);
      return;
    case "replace":
      out.text(request.group);
      out.text(request.eventId);
      out.text(request.leaving);
      out.text(request.joining);
      return;
    case "found":
      writeTexts(out, request.members);
      out.bytes(encodeEvent(request.created));
      put(out, LEVELS, request.required);
      return;
    default:
      assertNever(request);
  }
}

export function readRequest(from: ByteReader): PeerRequest {
  const kind = pick(from, REQUESTS);
  switch (kind) {
    case "submit":
      return {
        kind,
        key: from.text(KEY_BYTES_MAX),
        spec: from.bytes(JOB_SPEC_BYTES_MAX).slice(),
        assignedDcs: readTexts(from, JOB_DCS_MAX, DC_ID_BYTES_MAX),
      };
    case "append":
      return { kind, event: readEvent(from), durability: pick(from, LEVELS) };
    case "read":
      return {
        kind,
        jobId: from.text(JOB_ID_BYTES_MAX) as JobId,
        level: pick(from, READ_LEVELS),
        minSeq: from.varint() - 1,
        staleMs: from.varint(),
      };
    case "propose":
      return {
        kind,
        group: from.text(GROUP_ID_BYTES_MAX) as GroupId,
        eventId: from.text(EVENT_ID_BYTES_MAX),
        data: from.bytes(OPERATION_BYTES_MAX).slice(),
        members: readNodes(from),
      };
    case "inspect":
      return { kind, group: from.text(GROUP_ID_BYTES_MAX) as GroupId };
    case "replace":
      return {
        kind,
        group: from.text(GROUP_ID_BYTES_MAX) as GroupId,
        eventId: from.text(EVENT_ID_BYTES_MAX),
        leaving: from.text(NODE_ID_BYTES_MAX) as NodeId,
        joining: from.text(NODE_ID_BYTES_MAX) as NodeId,
      };
    case "found": {
      const members = readNodes(from);
      const created = readEvent(from);
      const required = pick(from, LEVELS);
      if (created.kind === "JobCreated") return { kind, members, created, required };
      from.fail("a group is founded by the creation of its job");
      return { kind: "read", jobId: created.jobId, level: "EVENTUAL", minSeq: -1, staleMs: 0 };
    }
    default:
      return assertNever(kind);
  }
}
