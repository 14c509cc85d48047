/**
 * Every message that may travel on a stream: its number for ever, its schema, its priority class and
 * who may send it to whom. Nothing else decodes. (CODEC-1, BEX-9)
 */

import { ByteReader, ByteWriter } from "../core/base/bytes.ts";
import type { PeerRole } from "./claims.ts";
import * as artifacts from "./messages/artifacts.ts";
import * as client from "./messages/client.ts";
import * as gate from "./messages/gate.ts";
import { keepAlive } from "./messages/keep-alive.ts";
import * as ledger from "./messages/ledger.ts";
import { swimStreamPacket } from "./messages/membership.ts";
import { refusal } from "./messages/refusal.ts";
import * as worker from "./messages/worker.ts";
import type { Type, ValueOf } from "./schema.ts";

export type Priority = "critical" | "high" | "normal" | "low";
export const PRIORITIES: readonly Priority[] = ["critical", "high", "normal", "low"];

interface MessageKind<Value> {
  readonly number: number;
  readonly type: Type<Value>;
  readonly priority: Priority;
  /** `from>to`; "any" means every member's role. */
  readonly directions: readonly string[];
}

function kind<Value>(
  number: number,
  type: Type<Value>,
  priority: Priority,
  ...directions: string[]
): MessageKind<Value> {
  return { number, type, priority, directions };
}

/** Clients call gates or, without gates, managers; gates call managers with the same messages. */
const OF_CALLERS = ["client>manager", "client>gate", "gate>manager"];
const TO_CALLERS = ["manager>client", "gate>client", "manager>gate"];

/** A number is given with a message's first sender and never again. */
export const MESSAGES = {
  membership: kind(1, swimStreamPacket, "critical", "any>any"),
  refusal: kind(2, refusal, "critical", "any>any", "gate>client", "manager>client"),
  keepAlive: kind(3, keepAlive, "critical", "any>any"),

  ledgerOpening: kind(64, ledger.opening, "critical", "gate>gate", "manager>manager"),
  ledgerOpened: kind(65, ledger.opened, "critical", "gate>gate", "manager>manager"),
  ledgerBatch: kind(66, ledger.batch, "high", "gate>gate", "manager>manager"),
  ledgerMark: kind(67, ledger.mark, "high", "gate>gate", "manager>manager"),

  heartbeat: kind(80, worker.heartbeat, "critical", "worker>manager"),
  opened: kind(81, worker.opened, "critical", "manager>worker", ...TO_CALLERS),
  announce: kind(82, worker.announce, "critical", "manager>worker"),
  announced: kind(83, worker.announced, "critical", "worker>manager"),
  orders: kind(84, worker.orders, "critical", "manager>worker"),
  events: kind(85, worker.events, "high", "worker>manager"),
  taken: kind(86, worker.taken, "high", "worker>manager", "manager>worker"),
  denial: kind(
    87,
    worker.denial,
    "high",
    "worker>manager",
    "manager>worker",
    "manager>manager",
    ...TO_CALLERS,
  ),
  drain: kind(88, worker.drain, "critical", "manager>worker"),
  extension: kind(89, worker.extension, "critical", "worker>manager"),
  extended: kind(90, worker.extended, "critical", "manager>worker"),

  blobGet: kind(96, artifacts.blobGet, "low", "worker>manager", "manager>manager", "gate>manager"),
  blobChunk: kind(
    97,
    artifacts.blobChunk,
    "low",
    "manager>worker",
    "manager>manager",
    "manager>gate",
  ),
  blobPut: kind(98, artifacts.blobPut, "low", "manager>manager", ...OF_CALLERS),
  blobHeld: kind(99, artifacts.blobHeld, "low", "manager>manager", ...TO_CALLERS),

  clientOpening: kind(112, client.clientOpening, "high", ...OF_CALLERS),
  clientRequest: kind(113, client.clientRequest, "normal", ...OF_CALLERS),
  clientAnswer: kind(114, client.clientAnswer, "normal", ...TO_CALLERS),

  gateRequest: kind(120, gate.gateRequest, "normal", "gate>manager"),
  gateAnswer: kind(121, gate.gateAnswer, "normal", "manager>gate"),
} as const;

export type MessageName = keyof typeof MESSAGES;
type MessageValue<Name extends MessageName> = ValueOf<(typeof MESSAGES)[Name]["type"]>;

export type StreamEnvelope = {
  [Name in MessageName]: {
    readonly name: Name;
    /** Pairs a reply with its request; 0 where neither is meant. (FRAME-8) */
    readonly correlation: number;
    readonly value: MessageValue<Name>;
  };
}[MessageName];

const byNumber = new Map<number, MessageName>();
for (const name of Object.keys(MESSAGES) as MessageName[])
  byNumber.set(MESSAGES[name].number, name);

/** Shared writer for messages without a writer of their own; a large buffer is released afterwards. */
const WRITER_BYTES = 65_536;
let shared = new ByteWriter(WRITER_BYTES);

/** Overwrites `out`; callers that send much pass a writer of their own. */
export function encodeStreamMessage(envelope: StreamEnvelope, out = shared): Uint8Array {
  const { number, type } = MESSAGES[envelope.name];
  out.clear();
  out.varint(number);
  out.varint(envelope.correlation);
  (type as Type<unknown>).write(out, envelope.value);
  if (out === shared && out.length > WRITER_BYTES) shared = new ByteWriter(WRITER_BYTES);
  return out.take();
}

type Received =
  | { readonly ok: true; readonly value: StreamEnvelope }
  /** `correlation`: of the request that is not understood, as far as it was read; else 0. */
  | { readonly ok: false; readonly problem: string; readonly correlation: number };

export function decodeStreamMessage(bytes: Uint8Array): Received {
  const from = new ByteReader(bytes);
  const number = from.varint();
  const read = from.varint();
  const correlation = from.failed ? 0 : read;
  const name = byNumber.get(number);
  if (name === undefined) {
    const problem = from.problem ?? `message ${number} is not known here`;
    return { ok: false, problem, correlation };
  }
  const value = MESSAGES[name].type.read(from);
  if (from.remaining > 0) from.fail("bytes after the end of a message");
  if (from.problem !== null) return { ok: false, problem: from.problem, correlation };
  return { ok: true, value: { name, correlation, value } as StreamEnvelope };
}

/** Null when this role may send this message to that one. */
export function directionProblem(name: MessageName, from: PeerRole, to: PeerRole): string | null {
  const { directions } = MESSAGES[name];
  const members = from !== "client" && to !== "client";
  if (directions.includes(`${from}>${to}`) || (members && directions.includes("any>any")))
    return null;
  return `a ${from} does not send ${name} to a ${to}`;
}
