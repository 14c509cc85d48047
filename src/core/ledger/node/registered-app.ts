/**
 * A group of a registered kind. Around its application this keeps what every kind needs: the index up to which it is
 * folded, and the outcomes of the latest operations, so that an operation committed twice over a failover changes the
 * state once. (EVT-2)
 */

import { assert } from "../../base/assert.ts";
import { ByteReader, ByteWriter } from "../../base/bytes.ts";
import { EVENT_ID_BYTES_MAX, type GroupSnapshot, type LogEntry } from "../group/messages.ts";
import {
  type Application,
  type GroupKind,
  type Outcome,
  SNAPSHOT_BYTES_MAX,
} from "./application.ts";
import type { NodeRules } from "./rules.ts";

const VERSION = 1;
/** Operations whose outcome is remembered: more than occur between an operation and its last retry. */
const REMEMBERED_MAX = 1_024;
const TEXT_BYTES_MAX = 256;

interface Remembered {
  readonly seq: number;
  readonly outcome: string;
  readonly reason: string | null;
}

export class RegisteredApp {
  readonly kind = "registered";
  readonly of: GroupKind;
  readonly application: Application;
  readonly #rules: NodeRules;
  /** By event, oldest first. */
  #remembered = new Map<string, Remembered>();
  #appliedSeq = -1;

  constructor(of: GroupKind, application: Application, rules: NodeRules) {
    this.of = of;
    this.application = application;
    this.#rules = rules;
  }

  get appliedSeq(): number {
    return this.#appliedSeq;
  }

  apply({ kind, seq, view, eventId, data }: LogEntry): Outcome | null {
    this.#appliedSeq = seq;
    if (kind !== "op") return null;
    const known = this.outcomeOf(eventId);
    if (known !== null) return known;
    const { outcome, reason } = this.application.apply({ seq, view, eventId, data });
    this.#remember(eventId, { seq, outcome, reason });
    return { kind: outcome, reason, seq, duplicate: false };
  }

  outcomeOf(eventId: string): Outcome | null {
    const known = this.#remembered.get(eventId);
    if (known === undefined || !this.#rules.operationsOnce) return null;
    const { outcome: kind, reason, seq } = known;
    return { kind, reason, seq, duplicate: true };
  }

  #remember(eventId: string, what: Remembered): void {
    this.#remembered.set(eventId, what);
    if (this.#remembered.size <= REMEMBERED_MAX) return;
    const [oldest] = this.#remembered.keys();
    if (oldest !== undefined) this.#remembered.delete(oldest);
  }

  /** version · seq + 1 · remembered · the application's own bytes */
  snapshot(): Uint8Array {
    const state = this.application.snapshot();
    assert(state.length <= this.of.snapshotBytesMax, `a state of ${this.of.prefix} is bounded`);
    const out = new ByteWriter(state.length + 1_024);
    out.uint8(VERSION);
    out.varint(this.#appliedSeq + 1);
    out.varint(this.#remembered.size);
    for (const [eventId, { seq, outcome, reason }] of this.#remembered) {
      out.text(eventId);
      out.varint(seq);
      out.text(outcome);
      out.text(reason ?? "");
    }
    out.bytes(state);
    return out.take();
  }

  restore({ seq: snapshotSeq, bytes }: GroupSnapshot): boolean {
    const from = new ByteReader(bytes);
    if (from.uint8() !== VERSION) from.fail("a snapshot of another version");
    const appliedSeq = from.varint() - 1;
    const count = from.varint();
    if (count > REMEMBERED_MAX) from.fail("too many remembered operations");
    const remembered = new Map<string, Remembered>();
    for (let i = 0; i < count && !from.failed; i++) {
      const eventId = from.text(EVENT_ID_BYTES_MAX);
      const seq = from.varint();
      const outcome = from.text(TEXT_BYTES_MAX);
      const reason = from.text(TEXT_BYTES_MAX);
      remembered.set(eventId, { seq, outcome, reason: reason === "" ? null : reason });
    }
    const state = from.bytes(SNAPSHOT_BYTES_MAX).slice();
    if (from.remaining > 0) from.fail("bytes after the end of a snapshot");
    if (appliedSeq !== snapshotSeq) from.fail("a snapshot of another place");
    if (from.problem !== null || !this.application.restore(state)) return false;
    this.#remembered = remembered;
    this.#appliedSeq = appliedSeq;
    return true;
  }
}
