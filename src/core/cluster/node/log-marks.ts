/**
 * How far the log of each peer was durable when it last said so. A data directory that comes back with less is an
 * older copy: it has forgotten votes and acknowledgements that others count on, and must not take part. (VSR-30)
 *
 * Said at most every second beside other messages, every ten seconds where nothing changed, and kept in memory:
 * whoever was not there when the newer log was told of does not notice. One peer that was is enough to keep the copy
 * from that peer.
 */

import { agreeOn, type Hello } from "../../../wire/hello.ts";
import type { Millis } from "../../base/brand.ts";
import type { NodeId } from "../../base/ids.ts";

const TOLD_EVERY_MS = 1_000;
/** The same again: clocks are told beside it. */
const REPEATED_EVERY_MS = 10_000;
/** How a refusal of such a peer begins: whoever hears it must not go on. */
export const OLD_LOG = "OLD_LOG";

interface Told {
  readonly identity: string;
  readonly lastRecord: number;
}

interface Telling {
  at: Millis;
  lastRecord: number;
}

export class LogMarks {
  readonly #self: Hello;
  /** Of peers. */
  readonly #told = new Map<NodeId, Told>();
  /** To peers that understand it. */
  readonly #telling = new Map<NodeId, Telling>();

  constructor(self: Hello) {
    this.#self = self;
  }

  /** A peer was greeted: whether it is told. */
  onGreeted(peer: NodeId, hello: Hello): void {
    if (agreeOn("log_marks", this.#self, hello))
      this.#telling.set(peer, { at: Number.NEGATIVE_INFINITY as Millis, lastRecord: -1 });
    else this.#telling.delete(peer);
  }

  /** This peer understands marks. */
  isTold(peer: NodeId): boolean {
    return this.#telling.has(peer);
  }

  /** What this peer is to be told now; null: nothing. */
  due(peer: NodeId, lastRecord: () => number, now: Millis): number | null {
    const telling = this.#telling.get(peer);
    if (telling === undefined || now - telling.at < TOLD_EVERY_MS) return null;
    const record = lastRecord();
    if (telling.lastRecord === record && now - telling.at < REPEATED_EVERY_MS) return null;
    telling.at = now;
    telling.lastRecord = record;
    return record;
  }

  onTold(peer: NodeId, identity: string, lastRecord: number): void {
    const known = this.#told.get(peer);
    if (known?.identity === identity && known.lastRecord >= lastRecord) return;
    this.#told.set(peer, { identity, lastRecord });
  }

  /** Why a peer that opens with this log is not heard; null when it is. */
  refuse(peer: NodeId, identity: string, lastRecord: number | null): string | null {
    if (lastRecord === null) return null;
    const known = this.#told.get(peer);
    if (known !== undefined && known.identity === identity && lastRecord < known.lastRecord)
      return (
        `${OLD_LOG}: the log of ${peer} ends at record ${lastRecord}, and it has told of record ` +
        `${known.lastRecord}: its data directory is an older copy, which has forgotten what it promised. Bring ` +
        "the newer one back, or let the node join under a new name and replace the old"
      );
    this.onTold(peer, identity, lastRecord);
    return null;
  }
}
