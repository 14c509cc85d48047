/** Secrets of simulated processes: a checksum replaces the cipher, which would only cost time. */

import type { Compressor } from "../../src/host/ports/compressor.ts";
import { checksumAead } from "../../src/wire/checksum-aead.ts";
import { KeyRing } from "../../src/wire/key-ring.ts";

const rings = new Map<string, KeyRing>();

export function secretOf(generation: number): string {
  return `gh7Kq2-vT9xLw4Zm-${generation}`;
}

/** The first secret seals; the others only open. */
export function ringOf(secrets: readonly string[]): KeyRing {
  const key = secrets.join(" ");
  const known = rings.get(key);
  if (known !== undefined) return known;
  const made = KeyRing.create(checksumAead, secrets, "simulated/test");
  if (!made.ok) throw new Error(made.problem);
  rings.set(key, made.ring);
  return made.ring;
}

/** Simulated processes never negotiate compression, so this is never called. */
export const noCompressor: Compressor = {
  deflate: (bytes) => bytes,
  inflate: () => null,
};
