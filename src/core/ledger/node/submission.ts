/**
 * Converts client requests to group operations: names the group, creates the job id, validates everything that can be
 * checked before anything is written. (IDEM-3, IDEM-21..23, LEDG-1)
 */

import { assert, assertNever } from "../../base/assert.ts";
import { ByteWriter, encodeUtf8 } from "../../base/bytes.ts";
import type { NodeId } from "../../base/ids.ts";
import { sha256 } from "../../base/sha256.ts";
import { SEQ_MAX, TIME_MS_MAX } from "../group/limits.ts";
import { EVENT_ID_BYTES_MAX, type GroupId, MEMBERS_MAX } from "../group/messages.ts";
import { decodeEvent, encodeEvent } from "../job/event-codec.ts";
import { type EventId, isCancel, type JobCreated, jobIdProblem, problemOf } from "../job/events.ts";
import type { JobId } from "../job/job-id.ts";
import { EVENT_BYTES_MAX } from "../job/limits.ts";
import { STORED_ACK } from "../keys/ack.ts";
import type { Admission, Submission } from "../keys/decide.ts";
import { KEY_FORMAT_ERROR, parseKey, shardOf } from "../keys/key.ts";
import { CREATED_BYTES_MAX } from "../keys/shard-entry.ts";
import { RESERVED_FOR_CANCELS } from "./config.ts";
import type { LedgerContext } from "./context.ts";
import type { LedgerAnswer, LedgerRequest, PeerRequest } from "./messages.ts";
import type { Routed } from "./router.ts";
import { shardGroup } from "./topology.ts";

type Refused = Extract<LedgerAnswer, { kind: "refused" }>;
type SubmitRequest = Extract<LedgerRequest, { kind: "submit" }>;
type ReadRequest = Extract<LedgerRequest, { kind: "read" }>;
type FoundRequest = Extract<PeerRequest, { kind: "found" }>;

assert(EVENT_BYTES_MAX <= CREATED_BYTES_MAX, "a shard's entry holds the creation of any job");

/** Length of the refusal reason that a shard stores; all of them are part of its snapshot. */
const REFUSAL_CHARACTERS_MAX = 200;

export function refused(code: string, message: string): Refused {
  return { kind: "refused", code, message };
}

export function groupOf(request: PeerRequest): GroupId {
  switch (request.kind) {
    case "submit": {
      const parsed = parseKey(request.key);
      return shardGroup(parsed.kind === "key" ? shardOf(parsed.key) : 0);
    }
    case "append":
      return request.event.jobId as string as GroupId;
    case "read":
      return request.jobId as string as GroupId;
    case "found":
      return request.created.jobId as string as GroupId;
    case "propose":
    case "inspect":
    case "replace":
      return request.group;
    default:
      return assertNever(request);
  }
}

/** Founders of the group that a request names, if it is new; empty if the group must exist. */
export function founders(request: PeerRequest): readonly NodeId[] {
  return request.kind === "found" || request.kind === "propose" ? request.members : [];
}

/** A client's request, ready to be sent to a group; or why it cannot be. */
export function prepare(request: LedgerRequest, context: LedgerContext): PeerRequest | Refused {
  switch (request.kind) {
    case "submit": {
      const key = parseKey(request.key);
      if (key.kind === "invalid") return refused("INVALID_KEY", `${KEY_FORMAT_ERROR}: ${key.why}`);
      const created = jobCreated(request, "" as JobId, context);
      const problem = problemOf({ ...created, jobId: "x" as JobId });
      if (problem !== null) return refused("INVALID_JOB", problem);
      if (key.kind === "key") return request;
      const stranger = unknownDatacenter(request, context);
      return stranger === null ? foundNew(request, context) : refused("UNKNOWN_DC", stranger);
    }
    case "append": {
      const problem = problemOf(request.event);
      return problem === null ? request : refused("INVALID_EVENT", problem);
    }
    case "replace":
      if (context.topology.knows(request.joining)) return request;
      return refused("UNKNOWN_NODE", `no node ${request.joining} is configured`);
    case "propose":
    case "inspect":
      return checkRegistered(request, context);
    case "read": {
      const problem = jobIdProblem(request.jobId) ?? rangeProblem(request);
      return problem === null ? request : refused("INVALID_READ", problem);
    }
    default:
      return assertNever(request);
  }
}

/** Rejects values that a peer would fail to decode, because that would close the link. */
function rangeProblem({ minSeq, staleMs }: ReadRequest): string | null {
  if (!Number.isSafeInteger(minSeq) || minSeq < -1 || minSeq > SEQ_MAX) {
    return `minSeq: ${minSeq} is not a whole number from -1 to ${SEQ_MAX}`;
  }
  if (staleMs >= 0 && staleMs <= TIME_MS_MAX) return null;
  return `staleMs: ${staleMs} is not from 0 to ${TIME_MS_MAX}`;
}

function checkRegistered(
  request: Extract<LedgerRequest, { kind: "propose" | "inspect" }>,
  { kinds, topology }: LedgerContext,
): PeerRequest | Refused {
  const { group } = request;
  const kind = kinds.of(group);
  if (kind === null || !kinds.knows(group)) {
    return refused("UNKNOWN_KIND", `${group} is no group of a registered kind`);
  }
  if (request.kind === "inspect") return request;
  const { data, eventId, members } = request;
  if (data.length > kind.operationBytesMax) {
    return refused("TOO_LARGE", `${data.length} bytes, at most ${kind.operationBytesMax}`);
  }
  const idBytes = encodeUtf8(eventId).length;
  if (idBytes === 0 || idBytes > EVENT_ID_BYTES_MAX) {
    return refused("INVALID_EVENT", `an event id has 1 to ${EVENT_ID_BYTES_MAX} bytes`);
  }
  const stranger = members.find((member) => !topology.knows(member));
  if (stranger !== undefined) return refused("UNKNOWN_NODE", `no node ${stranger} is configured`);
  const twice = new Set(members).size !== members.length;
  if (!twice && members.length <= MEMBERS_MAX) return request;
  return refused("BAD_MEMBERS", `at most ${MEMBERS_MAX} replicas, each named once`);
}

/** Returns why a job cannot run at its datacenters, or null if it can, as far as this node's configuration knows. */
function unknownDatacenter(
  { assignedDcs }: SubmitRequest,
  { options }: LedgerContext,
): string | null {
  const { datacenters } = options.config;
  const stranger = assignedDcs.find((dc) => !datacenters.includes(dc));
  if (datacenters.length === 0 || stranger === undefined) return null;
  const text = `no datacenter ${stranger} is configured; there are ${datacenters.join(", ")}`;
  return text.slice(0, REFUSAL_CHARACTERS_MAX);
}

/** Without a key: a new job for every request. */
function foundNew(request: SubmitRequest, context: LedgerContext): FoundRequest | Refused {
  const jobId = context.mint.next(context.wall);
  const replicas = context.topology.replicas(jobId as string as GroupId);
  if (replicas.length === 0) return refused("TOO_FEW_NODES", "too few nodes for a group");
  const members = inLine(replicas, context);
  const created = jobCreated(request, jobId, context);
  return { kind: "found", members, created, required: "GLOBAL" };
}

/**
 * Orders the replicas. The first leads the first view: this node, which is alive and has the request already, or the
 * first healthy one; unhealthy ones come last.
 */
function inLine(
  replicas: readonly NodeId[],
  { passedOver, self }: Pick<LedgerContext, "passedOver" | "self">,
): readonly NodeId[] {
  const place = (node: NodeId): number => (passedOver.has(node) ? 2 : node === self ? 0 : 1);
  return replicas.toSorted((one, other) => place(one) - place(other));
}

function jobCreated(request: SubmitRequest, jobId: JobId, context: LedgerContext): JobCreated {
  const { spec, assignedDcs } = request;
  const hlc = context.hlc.tick(context.wall);
  const eventId = `create/${jobId}` as EventId;
  return { kind: "JobCreated", jobId, eventId, fenceToken: 1, hlc, spec, assignedDcs };
}

/** The submission that the shard's primary decides about. A job id is created only if the key is new. */
export function keyed(request: SubmitRequest, context: LedgerContext): Submission | null {
  const parsed = parseKey(request.key);
  if (parsed.kind !== "key") return null;
  const admit = (): Admission => {
    const stranger = unknownDatacenter(request, context);
    if (stranger !== null) return { kind: "refuse", result: encodeUtf8(stranger) };
    const founding = foundNew(request, context);
    if (founding.kind === "refused") return { kind: "defer", why: founding.message };
    const { created, members: replicaSet } = founding;
    const { jobId } = created;
    return {
      ...{ kind: "accept", jobId, replicaSet },
      ...{ created: encodeEvent(created), ack: STORED_ACK },
    };
  };
  return { key: parsed.key, fingerprint: fingerprint(request, context), admit };
}

/** Every part has its length before it, so no two submissions share their bytes. (IDEM-5) */
export function fingerprint(
  { spec, assignedDcs }: SubmitRequest,
  { options: { identityOf } }: Pick<LedgerContext, "options">,
): Uint8Array {
  const writer = new ByteWriter(spec.length + 128);
  writer.text("hyperscale.ledger.submission.1");
  writer.bytes(identityOf === undefined ? spec : identityOf(spec));
  writer.varint(assignedDcs.length);
  for (const dc of assignedDcs) writer.text(dc);
  return sha256(writer.take());
}

/** From what a reservation holds; null when it cannot be read, which no checked entry is. */
export function founding(created: Uint8Array, members: readonly NodeId[]): FoundRequest | null {
  const decoded = decodeEvent(created);
  if (!decoded.ok || decoded.value.kind !== "JobCreated") return null;
  return { kind: "found", members, created: decoded.value, required: "NONE" };
}

/** How full a queue may be for a request to be accepted: a part is reserved for cancels. (G-12) */
export function shareFor(request: PeerRequest): number {
  const cancels = request.kind === "append" && isCancel(request.event);
  return cancels ? 1 : 1 - RESERVED_FOR_CANCELS;
}

export function boundFor(request: PeerRequest, bound: number): number {
  return Math.floor(bound * shareFor(request));
}

/** The answer when the time of a request is over. */
export function overdue(request: PeerRequest, why: string): LedgerAnswer {
  switch (request.kind) {
    case "append":
      return { kind: "unknown", eventId: request.event.eventId, level: "NONE", why };
    case "found":
      return { kind: "unknown", eventId: request.created.eventId, level: "NONE", why };
    case "propose":
    case "replace":
      return { kind: "unknown", eventId: request.eventId, level: "NONE", why };
    case "submit":
      return { kind: "submitted", answer: { kind: "retry", why } };
    case "inspect":
    case "read":
      return { kind: "retry", why };
    default:
      return assertNever(request);
  }
}

/** The client asked for a job, not for a group: its answer names the job. */
export function named({ reply, request }: Routed, answer: LedgerAnswer): LedgerAnswer {
  if (answer.kind !== "founded" || reply.kind !== "client" || request.kind !== "found") {
    return answer;
  }
  const { jobId, eventId } = request.created;
  const { seq, level } = answer;
  const what = { outcome: "applied", reason: null, duplicate: false, required: request.required };
  return { kind: "committed", jobId, eventId, seq, level, view: 1, ...what };
}
