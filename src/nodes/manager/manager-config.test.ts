import { expect, it } from "vitest";
import { MANAGER_DEFAULTS } from "../../core/cluster/manager/types.ts";
import { readSettings } from "../../ledger/settings.ts";
import { managerConfig } from "./manager-host.ts";

function configOf(env: Readonly<Record<string, string>>): ReturnType<typeof managerConfig> {
  const problems: string[] = [];
  const settings = readSettings("manager", { file: "m1.json", values: {} }, env, problems);
  expect(problems).toEqual([]);
  return managerConfig(settings);
}

it("has the defaults of its machine where nothing is set", () => {
  expect(configOf({})).toEqual(MANAGER_DEFAULTS);
});

it("takes how much may wait at a worker from its settings (BP-4)", () => {
  const { queuedPerCoreMax } = configOf({ HYPERSCALE_QUEUED_PER_CORE: "7" });
  expect(queuedPerCoreMax).toBe(7);
});
