import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { settingsOfRole } from "../../ledger/settings.ts";
import { readGateConfig } from "../../nodes/gate/config.ts";
import { readManagerConfig } from "../../nodes/manager/config.ts";
import { readWorkerConfig } from "../../nodes/worker/config.ts";
import { exampleConfig } from "./node-config.ts";

const READERS = { gate: readGateConfig, manager: readManagerConfig, worker: readWorkerConfig };

describe("a configuration with comments", () => {
  let dir: string;
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), "hyperscale-config-"));
    for (const name of ["cluster.key", "client.key"])
      await writeFile(join(dir, name), "Zk3-u7Qp9_xW2vLr8Tn5\n", { mode: 0o600 });
  });
  afterAll(() => rm(dir, { recursive: true }));

  for (const role of ["gate", "manager", "worker"] as const) {
    it(`of a ${role} is read as it is written, and with its settings`, async () => {
      const file = join(dir, `${role}.json`);
      const text = exampleConfig(role);
      await writeFile(file, text);
      expect(READERS[role](file)).toMatchObject({ ok: true });
      const [first] = settingsOfRole(role);
      const [name = "", { value = 0 } = {}] = first ?? [];
      // As people do: remove the two slashes before a setting, keep its comma.
      await writeFile(file, text.replace(`// "${name}"`, `"${name}"`));
      const read = READERS[role](file);
      expect(read).toMatchObject({ ok: true, config: { settings: { [name]: value } } });
      expect(text).toContain(`"${name}"`);
    });
  }

  it("keeps comments inside a text, and reports what is no JSON", async () => {
    const file = join(dir, "odd.json");
    const odd = exampleConfig("worker").replace('"dataDir": "w1"', '"dataDir": "w//1,]"');
    await writeFile(file, odd);
    expect(readWorkerConfig(file)).toMatchObject({
      ok: true,
      config: { dataDir: join(dir, "w/1,]") },
    });
    await writeFile(file, "{ name: 1 }");
    expect(readWorkerConfig(file)).toMatchObject({ ok: false });
  });
});
