/** Events for tests: short builders with sensible fields, and arbitrary ones for properties. */

import fc from "fast-check";
import { encodeUtf8 } from "../../../base/bytes.ts";
import { HLC_LOGICAL_MAX, HLC_WALL_MS_MAX, type Hlc } from "../../../base/hlc.ts";
import { nodeId } from "../../../base/ids.ts";
import type { Condition } from "../condition.ts";
import {
  type EventId,
  isReplicated,
  type JobEvent,
  type JobEventKind,
  type RunEvent,
} from "../events.ts";
import type { JobId } from "../job-id.ts";
import { PERMILLE_MAX } from "../limits.ts";

export const JOB = "use1-1704931200000-gate42-00001" as JobId;

export function stamp(wallMs: number, logical = 0, node = "gate42"): Hlc {
  return { wallMs, logical, node: nodeId(node) };
}

/** Any 32 bytes. */
export const DIGEST = Uint8Array.from({ length: 32 }, (_, at) => at * 7);

let made = 0;

type Bodies = { readonly [Name in JobEventKind]: Extract<JobEvent, { kind: Name }> };

function runBodies(
  head: Pick<JobEvent, "jobId" | "eventId" | "fenceToken" | "hlc">,
): Pick<Bodies, RunEvent["kind"]> {
  return {
    JobQueued: { ...head, kind: "JobQueued", reason: "no cores free" },
    JobDispatched: {
      ...head,
      kind: "JobDispatched",
      dcId: "a",
      cores: 4,
      attempt: 1,
      digest: DIGEST,
    },
    JobSetUpValue: { ...head, kind: "JobSetUpValue", workflow: "buy", value: new Uint8Array([5]) },
    JobStarted: {
      ...head,
      kind: "JobStarted",
      startAtMs: 1_704_931_200_000,
      planDigest: DIGEST,
      shares: [{ dcId: "a", cores: 4 }],
    },
    JobPaused: { ...head, kind: "JobPaused", requestor: "alice" },
    JobResumed: { ...head, kind: "JobResumed", requestor: "alice" },
    JobScaled: { ...head, kind: "JobScaled", permille: 1_500, requestor: "alice" },
    JobAborted: { ...head, kind: "JobAborted", reason: "now", requestor: "alice" },
    JobDcResult: {
      ...{ ...head, kind: "JobDcResult", dcId: "a", finalStatus: "passed", digest: DIGEST },
      ...{ bytes: 1_234, completed: 100, failed: 1 },
    },
  };
}

/** An event of the kind with a fresh id; anything may be given to replace a field. */
export function event<Kind extends JobEventKind>(
  kind: Kind,
  fields: Partial<Extract<JobEvent, { kind: Kind }>> = {},
): Extract<JobEvent, { kind: Kind }> {
  made++;
  const head = {
    jobId: JOB,
    eventId: `event-${made}` as EventId,
    fenceToken: 1,
    hlc: stamp(1_000 + made),
  };
  const bodies: Bodies = {
    JobCreated: {
      ...head,
      kind: "JobCreated",
      spec: new Uint8Array([1, 2]),
      assignedDcs: ["a", "b"],
    },
    JobAccepted: { ...head, kind: "JobAccepted", dcId: "a", workerCount: 3 },
    JobProgressReported: {
      ...head,
      kind: "JobProgressReported",
      dcId: "a",
      completed: 1,
      failed: 0,
    },
    JobCancellationRequested: {
      ...head,
      kind: "JobCancellationRequested",
      reason: "enough",
      requestor: "alice",
    },
    JobCancellationAcked: {
      ...head,
      kind: "JobCancellationAcked",
      dcId: "a",
      workflowsCancelled: 2,
    },
    JobCompleted: {
      ...head,
      kind: "JobCompleted",
      finalStatus: "passed",
      aggregateMetrics: new Uint8Array([9]),
    },
    JobFailed: { ...head, kind: "JobFailed", error: "broke", failedDc: "a" },
    JobTimedOut: {
      ...head,
      kind: "JobTimedOut",
      timeoutType: "idle",
      lastProgressHlc: stamp(900),
    },
    ...runBodies(head),
  };
  return { ...bodies[kind], ...fields } as unknown as Extract<JobEvent, { kind: Kind }>;
}

const text = (max: number): fc.Arbitrary<string> =>
  fc.string({ unit: "grapheme", maxLength: 12 }).filter((it) => encodeUtf8(it).length <= max);
const name = fc.stringMatching(/^[a-z0-9]{1,8}$/);
const count = fc.oneof(fc.nat(20), fc.maxSafeNat());
const bytes = fc.uint8Array({ maxLength: 40 });
const hlc: fc.Arbitrary<Hlc> = fc.record({
  wallMs: fc.nat({ max: HLC_WALL_MS_MAX }),
  logical: fc.oneof(fc.nat(20), fc.nat({ max: HLC_LOGICAL_MAX })),
  node: name.map(nodeId),
});

const head = {
  jobId: fc.constant(JOB),
  eventId: fc.uuid().map((id) => id as EventId),
  fenceToken: count,
  hlc,
};

const digest = fc.uint8Array({ minLength: 32, maxLength: 32 });

const condition: fc.Arbitrary<Condition> = fc
  .record({ ifSeq: fc.option(count), ifFence: fc.option(count) })
  .filter(({ ifSeq, ifFence }) => ifSeq !== null || ifFence !== null);

/** Few datacenters, so that streams of events get somewhere. */
const dc = fc.constantFrom("a", "b", "c");

const anyUnconditional: fc.Arbitrary<JobEvent> = fc.oneof(
  fc.record({
    kind: fc.constant("JobCreated" as const),
    ...head,
    spec: bytes,
    assignedDcs: fc.uniqueArray(dc, { minLength: 1 }),
  }),
  fc.record({ kind: fc.constant("JobAccepted" as const), ...head, dcId: dc, workerCount: count }),
  fc.record({
    kind: fc.constant("JobProgressReported" as const),
    ...head,
    dcId: dc,
    completed: count,
    failed: count,
  }),
  fc.record({
    kind: fc.constant("JobCancellationRequested" as const),
    ...head,
    reason: text(100),
    requestor: text(100),
  }),
  fc.record({
    kind: fc.constant("JobCancellationAcked" as const),
    ...head,
    dcId: dc,
    workflowsCancelled: count,
  }),
  fc.record({
    kind: fc.constant("JobCompleted" as const),
    ...head,
    finalStatus: text(64),
    aggregateMetrics: bytes,
  }),
  fc.record({ kind: fc.constant("JobFailed" as const), ...head, error: text(100), failedDc: dc }),
  fc.record({
    kind: fc.constant("JobTimedOut" as const),
    ...head,
    timeoutType: text(64),
    lastProgressHlc: fc.option(hlc),
  }),
  fc.record({ kind: fc.constant("JobQueued" as const), ...head, reason: text(100) }),
  fc.record({
    kind: fc.constant("JobDispatched" as const),
    ...{ ...head, dcId: dc, cores: count, attempt: count, digest },
  }),
  fc.record({
    kind: fc.constant("JobSetUpValue" as const),
    ...{ ...head, workflow: name, value: bytes },
  }),
  fc.record({
    kind: fc.constant("JobStarted" as const),
    ...{ ...head, startAtMs: fc.nat({ max: HLC_WALL_MS_MAX }), planDigest: digest },
    shares: fc.uniqueArray(fc.record({ dcId: dc, cores: count }), {
      minLength: 1,
      selector: ({ dcId }) => dcId,
    }),
  }),
  fc.record({ kind: fc.constant("JobPaused" as const), ...head, requestor: text(100) }),
  fc.record({ kind: fc.constant("JobResumed" as const), ...head, requestor: text(100) }),
  fc.record({
    kind: fc.constant("JobScaled" as const),
    ...{ ...head, permille: fc.nat(PERMILLE_MAX), requestor: text(100) },
  }),
  fc.record({
    kind: fc.constant("JobAborted" as const),
    ...{ ...head, reason: text(100), requestor: text(100) },
  }),
  fc.record({
    kind: fc.constant("JobDcResult" as const),
    ...{ ...head, dcId: dc, finalStatus: text(64), digest },
    ...{ bytes: count, completed: count, failed: count },
  }),
);

export const anyEvent: fc.Arbitrary<JobEvent> = fc
  .tuple(anyUnconditional, fc.option(condition, { freq: 3 }))
  .map(([one, needs]) =>
    needs === null || one.kind === "JobCreated" || !isReplicated(one.kind)
      ? one
      : { ...one, condition: needs },
  );

/** A stream that mostly begins with a creation, as real ones do. */
export const anyStream: fc.Arbitrary<readonly JobEvent[]> = fc
  .tuple(fc.boolean(), fc.array(anyEvent, { maxLength: 24 }))
  .map(([created, events]) => (created ? [event("JobCreated"), ...events] : events));
