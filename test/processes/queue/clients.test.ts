/** Clients that find a node, and nodes that leave nothing behind when they cannot start. */

import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { defaultSettings, QueueClient, QueueNode, silentLog } from "../../../src/queue/index.ts";
import { needs } from "../../needs.ts";
import { calmSettings, queueBench, runQueue } from "./fixtures.ts";
import { NO_POSTGRES, TestPostgres } from "./server.ts";

describe("clients and addresses", needs(TestPostgres.available(), NO_POSTGRES), () => {
  const bench = queueBench();

  it("tries the next address if there is no listener, and stays with the one that answered", async () => {
    const database = await bench.database();
    const first = await bench.node({ database, settings: calmSettings });
    const second = await bench.node({ database, settings: calmSettings });
    const client = bench.keep(new QueueClient(["http://127.0.0.1:9", first.url, second.url]));
    const task = await client.submit({ executor: "sleep", input: { ms: 1, result: "found" } });
    expect((await client.wait(task.id)).result).toBe("found");
    await first.stop(1_000);
    const other = await client.submit({ executor: "sleep", input: { ms: 1 } });
    expect((await client.wait(other.id)).state).toBe("SUCCEEDED");
    expect(() => new QueueClient([])).toThrow(/at least one node/);
  });

  it("names the token file that a node does not accept", async () => {
    const folder = mkdtempSync(join(tmpdir(), "hyperscale-token-"));
    const wrong = join(folder, "wrong");
    writeFileSync(wrong, "w".repeat(32), { mode: 0o600 });
    const node = await bench.node({
      database: await bench.database(),
      token: "t".repeat(32),
      settings: calmSettings,
    });
    const refused = runQueue("list", "--url", node.url, "--token-file", wrong);
    await expect(refused).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`The token of ${wrong} is not the one of this node`),
    });
    rmSync(folder, { recursive: true, force: true });
  });

  it("makes neither a database nor a token for an address that is taken", async () => {
    const folder = mkdtempSync(join(tmpdir(), "hyperscale-taken-"));
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, "127.0.0.1", resolve));
    const address = taken.address();
    const port = address !== null && typeof address === "object" ? address.port : 0;
    const dataDirectory = join(folder, "queue");
    const start = QueueNode.start({
      nodeId: "late",
      role: "auto",
      listen: { host: "127.0.0.1", port },
      dataDirectory,
      tokenFile: join(dataDirectory, "token"),
      executors: {},
      settings: defaultSettings,
      log: silentLog,
    });
    await expect(start).rejects.toThrow(/EADDRINUSE/);
    expect(existsSync(dataDirectory)).toBe(false);
    await new Promise((resolve) => taken.close(resolve));
    rmSync(folder, { recursive: true, force: true });
  });
});
