/** The rules of a node, beside those of its groups and shards, that can be broken one at a time. */

export interface NodeRules {
  /** A peer is heard with the data directory it was first heard with, and with no other. (VSR-30) */
  readonly identityPinned: boolean;
}

export const NODE_RULES: NodeRules = { identityPinned: true };
