/** Manager context for unit tests: one manager, no groups unless given. */

import { nodeId } from "../../../base/ids.ts";
import { ManagerContext } from "../context.ts";
import { type GroupLookup, MANAGER_DEFAULTS } from "../types.ts";

const NO_GROUPS: GroupLookup = { find: () => null, names: () => [] };

export function contextOf(groups = NO_GROUPS): ManagerContext {
  const self = nodeId("m0");
  const options = {
    ...{ self, datacenter: "dc1", managers: [self], addresses: {}, boot: "b", errorKinds: [] },
    ...{ version: "1.0.0", config: MANAGER_DEFAULTS },
    machine: { node: "", platform: "", cpuModel: "" },
  };
  return new ManagerContext(options, groups);
}
