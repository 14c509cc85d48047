/** What the parts of a manager share, for tests of one part: one manager, no groups. */

import { nodeId } from "../../../base/ids.ts";
import { ManagerContext } from "../context.ts";
import { MANAGER_DEFAULTS } from "../types.ts";

export function contextOf(): ManagerContext {
  const self = nodeId("m0");
  const options = {
    ...{ self, datacenter: "dc1", managers: [self], addresses: {}, boot: "b", errorKinds: [] },
    ...{ version: "1.0.0", config: MANAGER_DEFAULTS },
    machine: { node: "", platform: "", cpuModel: "" },
  };
  return new ManagerContext(options, { find: () => null, names: () => [] });
}
