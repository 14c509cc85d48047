/** The groups of registered kinds that a manager's ledger node replicates. */

import type { LedgerNode } from "../../ledger/node/node.ts";
import type { GroupLookup } from "./types.ts";

/** `node`: the ledger node of this process; null while there is none. */
export function groupsIn(node: () => Pick<LedgerNode, "groups"> | null): GroupLookup {
  return {
    find: (name) => {
      const group = node()?.groups.get(name);
      if (group?.app.kind !== "registered") return null;
      const { acting, commit, primary, startSeq } = group.replica.state;
      const isBehind = primary === null || (acting && commit < startSeq);
      return { application: group.app.application, primary, isBehind };
    },
    names: () => node()?.groups.keys() ?? [],
  };
}
