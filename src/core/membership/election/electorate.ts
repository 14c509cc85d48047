/**
 * Identifies the electorate of a vote. A majority is meaningful only among members that count the same voters: two
 * halves of a group that were configured differently would each elect a leader.
 */

import { encodeUtf8 } from "../../base/bytes.ts";
import { hexOf } from "../../base/hex.ts";
import type { NodeId } from "../../base/ids.ts";
import { sha256 } from "../../base/sha256.ts";

const DIGEST_BYTES = 8;
export const ELECTORATE_DIGEST_CHARACTERS = 2 * DIGEST_BYTES;

/** The same for the same voters in any order. */
export function electorateDigest(voters: readonly NodeId[]): string {
  const digest = sha256(encodeUtf8([...voters].sort().join("\n")));
  return hexOf(digest.subarray(0, DIGEST_BYTES));
}
