/** Finds the jobs that a gate's ledger node replicates. */

import type { LedgerNode } from "../../ledger/node/node.ts";
import type { GateLookup, JobGroup } from "./types.ts";

export function lookupIn(node: Pick<LedgerNode, "groups" | "knowsKey" | "openJobs">): GateLookup {
  const found = (id: string): JobGroup | null => {
    const group = node.groups.get(id as Parameters<typeof node.groups.get>[0]);
    if (group?.app.kind !== "job") return null;
    const { knownView: view, primary } = group.replica.state;
    return { state: group.app.state, primary, view };
  };
  function* all(ids: Iterable<string>): Iterable<JobGroup> {
    for (const id of ids) {
      const group = found(id);
      if (group !== null) yield group;
    }
  }
  return {
    job: found,
    knows: (key) => node.knowsKey(key),
    jobs: () => all(node.groups.keys()),
    openJobs: () => all(node.openJobs()),
  };
}
