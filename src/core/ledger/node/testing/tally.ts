/** A small kind of group for tests and the simulator: it sums the numbers it receives. */

import { ByteReader, ByteWriter } from "../../../base/bytes.ts";
import type { Application, GroupKind, Operation } from "../application.ts";

const AMOUNT_MAX = 1_000;

export interface Tally {
  readonly count: number;
  readonly sum: number;
  /** The highest fence of anything that was added. */
  readonly fence: number;
}

export function encodeAmount(amount: number): Uint8Array {
  const out = new ByteWriter(8);
  out.varint(amount);
  return out.take();
}

export function decodeAmount(data: Uint8Array): number | null {
  const from = new ByteReader(data);
  const amount = from.varint();
  return from.failed || from.remaining > 0 || amount > AMOUNT_MAX ? null : amount;
}

export function decodeTally(bytes: Uint8Array): Tally | null {
  const from = new ByteReader(bytes);
  const tally = { count: from.varint(), sum: from.varint(), fence: from.varint() };
  return from.failed || from.remaining > 0 ? null : tally;
}

class TallyApplication implements Application {
  #tally: Tally = { count: 0, sum: 0, fence: 0 };

  problemOf(data: Uint8Array): string | null {
    return decodeAmount(data) === null ? `not a number up to ${AMOUNT_MAX}` : null;
  }

  apply({ data, view }: Operation): { readonly outcome: string; readonly reason: string | null } {
    const amount = decodeAmount(data);
    if (amount === null) return { outcome: "rejected", reason: "UNREADABLE" };
    const { count, sum, fence } = this.#tally;
    this.#tally = { count: count + 1, sum: sum + amount, fence: Math.max(fence, view) };
    return { outcome: "added", reason: null };
  }

  snapshot(): Uint8Array {
    const out = new ByteWriter(16);
    out.varint(this.#tally.count);
    out.varint(this.#tally.sum);
    out.varint(this.#tally.fence);
    return out.take();
  }

  restore(bytes: Uint8Array): boolean {
    const tally = decodeTally(bytes);
    if (tally !== null) this.#tally = tally;
    return tally !== null;
  }
}

export const TALLY: GroupKind = {
  prefix: "tally/",
  operationBytesMax: 16,
  snapshotBytesMax: 64,
  found: (name) => (/^[a-z0-9]{1,16}$/.test(name) ? new TallyApplication() : null),
};
