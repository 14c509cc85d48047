/**
 * One entry of the audit log as bytes: a schema-encoded record whose every text and list is bounded. A text that is too
 * long is cut when it is written, so that a peer's long name costs a few bytes and never an entry. Unknown fields are
 * skipped by the schema; an entry that only a later version can read says so by its `format`.
 */

import { encodeUtf8 } from "../core/base/bytes.ts";
import type { AuditEvent } from "../host/ports/audit.ts";
import {
  decode,
  encode,
  list,
  oneOf,
  optional,
  required,
  struct,
  text,
  uint,
} from "../wire/schema.ts";

/** Stored fields besides the record's own time and number. */
export interface StoredEvent {
  readonly format: number;
  /** The node that wrote it. */
  readonly node: string;
  readonly kind: string;
  readonly subject: string;
  readonly requester: StoredRequester;
  readonly detail: readonly StoredDetail[];
}

interface StoredRequester {
  readonly kind: (typeof REQUESTER_KINDS)[number];
  readonly name: string;
  readonly credential: string;
  readonly address: string;
}

interface StoredDetail {
  readonly name: string;
  readonly value: string;
}

const ENTRY_FORMAT = 1;
const NAME_BYTES_MAX = 256;
const KIND_BYTES_MAX = 64;
const SUBJECT_BYTES_MAX = 512;
const DETAIL_COUNT_MAX = 16;
const DETAIL_NAME_BYTES_MAX = 64;
const DETAIL_VALUE_BYTES_MAX = 512;
/** Above the sum of the bounds; a larger record was not written by us. */
export const ENTRY_BYTES_MAX = 16_384;

const REQUESTER_KINDS = ["operator", "peer", "self", "system", "client", "worker"] as const;

const requester = struct<StoredRequester>("requester", {
  kind: required(1, oneOf(REQUESTER_KINDS)),
  name: optional(2, text(NAME_BYTES_MAX), ""),
  credential: optional(3, text(NAME_BYTES_MAX), ""),
  address: optional(4, text(NAME_BYTES_MAX), ""),
});

const detail = struct<StoredDetail>("detail", {
  name: required(1, text(DETAIL_NAME_BYTES_MAX)),
  value: optional(2, text(DETAIL_VALUE_BYTES_MAX), ""),
});

const stored = struct<StoredEvent>("auditEntry", {
  format: required(1, uint),
  node: required(2, text(NAME_BYTES_MAX)),
  kind: required(3, text(KIND_BYTES_MAX)),
  subject: optional(4, text(SUBJECT_BYTES_MAX), ""),
  requester: required(5, requester),
  detail: optional(6, list(detail, DETAIL_COUNT_MAX), []),
});

/** Only the number: a later format may have any other fields. */
const formatOnly = struct<{ readonly format: number }>("auditEntry", { format: required(1, uint) });

export function encodeEvent(node: string, event: AuditEvent): Uint8Array {
  const { kind, name, credential = "", address = "" } = event.requester;
  return encode(stored, {
    format: ENTRY_FORMAT,
    node: cut(node, NAME_BYTES_MAX),
    kind: event.kind,
    subject: cut(event.subject, SUBJECT_BYTES_MAX),
    requester: {
      kind,
      name: cut(name, NAME_BYTES_MAX),
      credential: cut(credential, NAME_BYTES_MAX),
      address: cut(address, NAME_BYTES_MAX),
    },
    detail: Object.entries(event.detail ?? {})
      .slice(0, DETAIL_COUNT_MAX)
      .map(([key, value]) => ({
        name: cut(key, DETAIL_NAME_BYTES_MAX),
        value: cut(String(value), DETAIL_VALUE_BYTES_MAX),
      })),
  });
}

type DecodedEvent =
  | { readonly kind: "event"; readonly event: StoredEvent }
  | { readonly kind: "newer"; readonly format: number }
  | { readonly kind: "damaged"; readonly problem: string };

/** Total: never throws for any bytes. */
export function decodeEvent(bytes: Uint8Array): DecodedEvent {
  if (bytes.length > ENTRY_BYTES_MAX) return { kind: "damaged", problem: "too large" };
  const whole = decode(stored, bytes);
  if (whole.ok && whole.value.format <= ENTRY_FORMAT) return { kind: "event", event: whole.value };
  const head = decode(formatOnly, bytes);
  if (head.ok && head.value.format > ENTRY_FORMAT) {
    return { kind: "newer", format: head.value.format };
  }
  return { kind: "damaged", problem: whole.ok ? "an unknown format" : whole.problem };
}

const CUT_MARK = "…";
const CUT_MARK_BYTES = 3;

/** At most `bytesMax` bytes of UTF-8, cut between characters. */
function cut(value: string, bytesMax: number): string {
  // A unit of UTF-16 is at most three bytes of UTF-8.
  if (value.length * 3 <= bytesMax) return value;
  if (value.length <= bytesMax && encodeUtf8(value).length <= bytesMax) return value;
  let kept = "";
  let bytes = CUT_MARK_BYTES;
  for (const character of value.slice(0, bytesMax)) {
    bytes += encodeUtf8(character).length;
    if (bytes > bytesMax) break;
    kept += character;
  }
  return kept + CUT_MARK;
}
