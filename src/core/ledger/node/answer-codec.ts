/** Binary encoding of answers. */

import { assertNever } from "../../base/assert.ts";
import type { ByteReader, ByteWriter } from "../../base/bytes.ts";
import { NODE_ID_BYTES_MAX, type NodeId } from "../../base/ids.ts";
import { EVENT_ID_BYTES_MAX, GROUP_ID_BYTES_MAX, type GroupId } from "../group/messages.ts";
import type { ConditionFailure } from "../job/condition.ts";
import type { JobId } from "../job/job-id.ts";
import { initialState, type JobState } from "../job/job-state.ts";
import { JOB_ID_BYTES_MAX, JOB_STATE_BYTES_MAX } from "../job/limits.ts";
import { decodeJobState, encodeJobState } from "../job/state-codec.ts";
import type { SubmissionAnswer } from "../keys/decide.ts";
import { SNAPSHOT_BYTES_MAX } from "./application.ts";
import {
  LEVELS,
  pick,
  put,
  readNodes,
  readOptional,
  TEXT_BYTES_MAX,
  writeOptional,
  writeTexts,
} from "./codec-parts.ts";
import type { LedgerAnswer } from "./messages.ts";

const RESULT_BYTES_MAX = 4_096;
const ANSWERS: readonly LedgerAnswer["kind"][] = [
  "committed",
  "unknown",
  "submitted",
  "job",
  "founded",
  "notFound",
  "redirect",
  "retry",
  "refused",
  "conflict",
  "state",
  "passedOn",
];
const FAILURES: readonly ConditionFailure[] = ["SEQ_MOVED", "FENCE_MOVED"];
const SUBMISSIONS: readonly SubmissionAnswer["kind"][] = [
  "accepted",
  "rejected",
  "keyReused",
  "retry",
];

export function writeAnswer(out: ByteWriter, answer: LedgerAnswer): void {
  put(out, ANSWERS, answer.kind);
  switch (answer.kind) {
    case "committed":
      out.text(answer.jobId);
      out.text(answer.eventId);
      out.varint(answer.seq + 1);
      out.text(answer.outcome);
      writeOptional(out, answer.reason);
      out.uint8(answer.duplicate ? 1 : 0);
      put(out, LEVELS, answer.level);
      put(out, LEVELS, answer.required);
      out.varint(answer.view);
      return;
    case "unknown":
      out.text(answer.eventId);
      put(out, LEVELS, answer.level);
      out.text(answer.why);
      return;
    case "passedOn":
      out.text(answer.jobId);
      out.text(answer.eventId);
      out.text(answer.why);
      return;
    case "submitted":
      writeSubmission(out, answer.answer);
      return;
    case "job":
      out.bytes(encodeJobState(answer.state));
      out.text(answer.servedBy);
      writeOptional(out, answer.primary);
      out.varint(answer.view);
      writeTexts(out, answer.members);
      out.uint8(answer.archived ? 1 : 0);
      return;
    case "founded":
      out.varint(answer.seq + 1);
      put(out, LEVELS, answer.level);
      return;
    case "notFound":
      out.text(answer.jobId);
      return;
    case "redirect":
      writeOptional(out, answer.primary);
      return;
    case "retry":
      out.text(answer.why);
      return;
    case "refused":
      out.text(answer.code);
      out.text(answer.message);
      return;
    case "conflict":
      out.text(answer.jobId);
      out.text(answer.eventId);
      put(out, FAILURES, answer.reason);
      out.varint(answer.seq + 1);
      out.varint(answer.fence);
      return;
    case "state":
      out.text(answer.group);
      out.varint(answer.seq + 1);
      out.varint(answer.view);
      out.bytes(answer.bytes);
      return;
    default:
      assertNever(answer);
  }
}

export function readAnswer(from: ByteReader): LedgerAnswer {
  const kind = pick(from, ANSWERS);
  switch (kind) {
    case "committed":
      return {
        kind,
        jobId: from.text(JOB_ID_BYTES_MAX),
        eventId: from.text(EVENT_ID_BYTES_MAX),
        seq: from.varint() - 1,
        outcome: from.text(TEXT_BYTES_MAX),
        reason: readOptional(from),
        duplicate: from.uint8() === 1,
        level: pick(from, LEVELS),
        required: pick(from, LEVELS),
        view: from.varint(),
      };
    case "unknown":
      return {
        kind,
        eventId: from.text(EVENT_ID_BYTES_MAX),
        level: pick(from, LEVELS),
        why: from.text(TEXT_BYTES_MAX),
      };
    case "passedOn":
      return {
        kind,
        jobId: from.text(JOB_ID_BYTES_MAX),
        eventId: from.text(EVENT_ID_BYTES_MAX),
        why: from.text(TEXT_BYTES_MAX),
      };
    case "submitted":
      return { kind, answer: readSubmission(from) };
    case "job":
      return readJob(from);
    case "founded":
      return { kind, seq: from.varint() - 1, level: pick(from, LEVELS) };
    case "notFound":
      return { kind, jobId: from.text(GROUP_ID_BYTES_MAX) };
    case "redirect":
      return { kind, primary: readOptional(from) as NodeId | null };
    case "retry":
      return { kind, why: from.text(TEXT_BYTES_MAX) };
    case "refused":
      return { kind, code: from.text(TEXT_BYTES_MAX), message: from.text(TEXT_BYTES_MAX) };
    case "conflict":
      return {
        kind,
        jobId: from.text(JOB_ID_BYTES_MAX),
        eventId: from.text(EVENT_ID_BYTES_MAX),
        reason: pick(from, FAILURES),
        seq: from.varint() - 1,
        fence: from.varint(),
      };
    case "state":
      return {
        kind,
        group: from.text(GROUP_ID_BYTES_MAX) as GroupId,
        seq: from.varint() - 1,
        view: from.varint(),
        bytes: from.bytes(SNAPSHOT_BYTES_MAX).slice(),
      };
    default:
      return assertNever(kind);
  }
}

function readJob(from: ByteReader): LedgerAnswer {
  return {
    kind: "job",
    state: readJobState(from),
    servedBy: from.text(NODE_ID_BYTES_MAX) as NodeId,
    primary: readOptional(from) as NodeId | null,
    view: from.varint(),
    members: readNodes(from),
    archived: from.uint8() === 1,
  };
}

/** Returns the state of no job once the reader has failed. */
export function readJobState(from: ByteReader): JobState {
  const decoded = decodeJobState(from.bytes(JOB_STATE_BYTES_MAX));
  if (decoded.ok) return decoded.value;
  from.fail(decoded.problem);
  return initialState("" as JobId);
}

function writeSubmission(out: ByteWriter, answer: SubmissionAnswer): void {
  put(out, SUBMISSIONS, answer.kind);
  switch (answer.kind) {
    case "accepted":
      out.text(answer.jobId);
      out.bytes(answer.ack);
      out.uint8(answer.duplicate ? 1 : 0);
      return;
    case "rejected":
      out.bytes(answer.result);
      out.uint8(answer.duplicate ? 1 : 0);
      return;
    case "keyReused":
      return;
    case "retry":
      out.text(answer.why);
      return;
    default:
      assertNever(answer);
  }
}

function readSubmission(from: ByteReader): SubmissionAnswer {
  const kind = pick(from, SUBMISSIONS);
  switch (kind) {
    case "accepted":
      return {
        kind,
        jobId: from.text(JOB_ID_BYTES_MAX),
        ack: from.bytes(RESULT_BYTES_MAX).slice(),
        duplicate: from.uint8() === 1,
      };
    case "rejected":
      return {
        kind,
        result: from.bytes(RESULT_BYTES_MAX).slice(),
        duplicate: from.uint8() === 1,
      };
    case "keyReused":
      return { kind };
    case "retry":
      return { kind, why: from.text(TEXT_BYTES_MAX) };
    default:
      return assertNever(kind);
  }
}
