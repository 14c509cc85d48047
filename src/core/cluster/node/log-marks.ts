/**
 * Durable end of each peer's log, as last reported. A data directory that returns with less is an older copy: it has
 * lost votes and acknowledgements that others count on, and must not take part. (VSR-30)
 *
 * Marks are sent with other messages at most every second, or every ten seconds if nothing changed, and are kept in
 * memory. A peer that missed the newer mark cannot detect the copy; each peer that received it rejects the copy.
 */

import { agreeOn, type Hello } from "../../../wire/hello.ts";
import type { Millis } from "../../base/brand.ts";
import type { NodeId } from "../../base/ids.ts";

const SENT_EVERY_MS = 1_000;
/** Interval of unchanged marks, which also carry the clock. */
const REPEATED_EVERY_MS = 10_000;
/** Prefix of a refusal because of an older log. The refused node must stop. */
export const OLD_LOG = "OLD_LOG";

interface Received {
  readonly identity: string;
  readonly lastRecord: number;
}

interface Sent {
  at: Millis;
  lastRecord: number;
}

export class LogMarks {
  readonly #self: Hello;
  /** Last mark received from each peer. */
  readonly #received = new Map<NodeId, Received>();
  /** Last mark sent to each peer that supports marks. */
  readonly #sent = new Map<NodeId, Sent>();

  constructor(self: Hello) {
    this.#self = self;
  }

  /** Records whether a greeted peer supports marks. */
  onGreeted(peer: NodeId, hello: Hello): void {
    if (agreeOn("log_marks", this.#self, hello))
      this.#sent.set(peer, { at: Number.NEGATIVE_INFINITY as Millis, lastRecord: -1 });
    else this.#sent.delete(peer);
  }

  /** Whether this peer supports marks. */
  isSupported(peer: NodeId): boolean {
    return this.#sent.has(peer);
  }

  /** Returns the mark to send to this peer now, or null. */
  due(peer: NodeId, lastRecord: () => number, now: Millis): number | null {
    const sent = this.#sent.get(peer);
    if (sent === undefined || now - sent.at < SENT_EVERY_MS) return null;
    const record = lastRecord();
    if (sent.lastRecord === record && now - sent.at < REPEATED_EVERY_MS) return null;
    sent.at = now;
    sent.lastRecord = record;
    return record;
  }

  onReceived(peer: NodeId, identity: string, lastRecord: number): void {
    const known = this.#received.get(peer);
    if (known?.identity === identity && known.lastRecord >= lastRecord) return;
    this.#received.set(peer, { identity, lastRecord });
  }

  /** Reason to reject a peer that opens with this log; null to accept it. */
  refuse(peer: NodeId, identity: string, lastRecord: number | null): string | null {
    if (lastRecord === null) return null;
    const known = this.#received.get(peer);
    if (known !== undefined && known.identity === identity && lastRecord < known.lastRecord)
      return (
        `${OLD_LOG}: the log of ${peer} ends at record ${lastRecord}, but it reported record ` +
        `${known.lastRecord} before: its data directory is an older copy that lacks later votes. Restore the ` +
        "newer one, or replace the node by one with a new name"
      );
    this.onReceived(peer, identity, lastRecord);
    return null;
  }
}
