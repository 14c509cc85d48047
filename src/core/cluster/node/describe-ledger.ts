/** Configuration that all nodes of a ledger must agree on before they replicate. (VSR-26) */

import { encodeUtf8 } from "../../base/bytes.ts";
import { sha256 } from "../../base/sha256.ts";
import type { Site } from "../../ledger/job/placement.ts";
import { SHARD_COUNT } from "../../ledger/keys/key.ts";
import type { LedgerNodeConfig } from "../../ledger/node/types.ts";

const DIGEST_BYTES = 16;
const DESCRIBED_CHARACTERS_MAX = 500;

export interface LedgerDescription {
  readonly digest: string;
  /** Human-readable form of the digest. */
  readonly described: string;
}

/** `sites`: all nodes, in the same order on every node. */
export function describeLedger(
  sites: readonly Site[],
  { replicas, fewGates }: Pick<LedgerNodeConfig, "replicas" | "fewGates">,
): LedgerDescription {
  const nodes = sites.map(({ node, region }) => `${node}@${region}`);
  const described = `${nodes.join(" ")}, ${replicas} replicas, few nodes: ${fewGates}`;
  const hash = sha256(encodeUtf8(`${described}, ${SHARD_COUNT} shards`));
  let digest = "";
  for (const byte of hash.subarray(0, DIGEST_BYTES)) digest += byte.toString(16).padStart(2, "0");
  return { digest, described: described.slice(0, DESCRIBED_CHARACTERS_MAX) };
}
