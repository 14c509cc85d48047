/** The fields of the events of a run as bytes; the head is `event-codec.ts`'s. */

import { assertNever } from "../../base/assert.ts";
import type { ByteReader, ByteWriter } from "../../base/bytes.ts";
import type { JobEvent, RunEvent, Share } from "./events.ts";
import * as limits from "./limits.ts";

type Head = Pick<JobEvent, "jobId" | "eventId" | "fenceToken" | "hlc" | "condition">;
/** Each event of a run without what all events have. */
type RunBody = RunEvent extends infer One
  ? One extends RunEvent
    ? Omit<One, keyof Head>
    : never
  : never;

export function writeRunBody(writer: ByteWriter, event: RunEvent): void {
  switch (event.kind) {
    case "JobQueued":
      writer.text(event.reason);
      return;
    case "JobDispatched":
      writer.text(event.dcId);
      writer.varint(event.cores);
      writer.varint(event.attempt);
      writer.raw(event.digest);
      return;
    case "JobSetUpValue":
      writer.text(event.workflow);
      writer.bytes(event.value);
      return;
    case "JobStarted":
      writer.varint(event.startAtMs);
      writer.raw(event.planDigest);
      writeShares(writer, event.shares);
      return;
    case "JobPaused":
    case "JobResumed":
      writer.text(event.requestor);
      return;
    case "JobScaled":
      writer.varint(event.permille);
      writer.text(event.requestor);
      return;
    case "JobAborted":
      writer.text(event.reason);
      writer.text(event.requestor);
      return;
    case "JobDcResult":
      writer.text(event.dcId);
      writer.text(event.finalStatus);
      writer.raw(event.digest);
      writer.varint(event.bytes);
      writer.varint(event.completed);
      writer.varint(event.failed);
      return;
    default:
      assertNever(event);
  }
}

export function readRunBody(reader: ByteReader, kind: RunEvent["kind"]): RunBody {
  const dc = (): string => reader.text(limits.DC_ID_BYTES_MAX);
  const requestor = (): string => reader.text(limits.REQUESTOR_BYTES_MAX);
  const digest = (): Uint8Array => reader.raw(limits.DIGEST_BYTES).slice();
  switch (kind) {
    case "JobQueued":
      return { kind, reason: reader.text(limits.REASON_BYTES_MAX) };
    case "JobDispatched": {
      const [dcId, cores, attempt] = [dc(), reader.varint(), reader.varint()];
      return { kind, dcId, cores, attempt, digest: digest() };
    }
    case "JobSetUpValue": {
      const workflow = reader.text(limits.WORKFLOW_NAME_BYTES_MAX);
      return { kind, workflow, value: reader.bytes(limits.SET_UP_VALUE_BYTES_MAX).slice() };
    }
    case "JobStarted": {
      const [startAtMs, planDigest] = [reader.varint(), digest()];
      return { kind, startAtMs, planDigest, shares: readShares(reader, dc) };
    }
    case "JobPaused":
    case "JobResumed":
      return { kind, requestor: requestor() };
    case "JobScaled":
      return { kind, permille: reader.varint(), requestor: requestor() };
    case "JobAborted":
      return { kind, reason: reader.text(limits.REASON_BYTES_MAX), requestor: requestor() };
    case "JobDcResult":
      return {
        kind,
        dcId: dc(),
        finalStatus: reader.text(limits.FINAL_STATUS_BYTES_MAX),
        digest: digest(),
        bytes: reader.varint(),
        completed: reader.varint(),
        failed: reader.varint(),
      };
    default:
      return assertNever(kind);
  }
}

export function writeShares(writer: ByteWriter, shares: readonly Share[]): void {
  writer.varint(shares.length);
  for (const { dcId, cores } of shares) {
    writer.text(dcId);
    writer.varint(cores);
  }
}

export function readShares(reader: ByteReader, dc: () => string): readonly Share[] {
  const count = reader.varint();
  if (count > limits.JOB_DCS_MAX) reader.fail(`${count} shares are too many`);
  const shares: Share[] = [];
  for (let i = 0; i < count && !reader.failed; i++) {
    shares.push({ dcId: dc(), cores: reader.varint() });
  }
  return shares;
}
