/** The queue with nothing set up: the embedded database in a data directory. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { QueueClient } from "../../../src/queue/index.ts";
import { fillDataDirectory } from "./data-directory.ts";
import { NodeProcess } from "./fixtures.ts";

const SUBMITS = 400;
const SUBMITTERS = 50;

describe("queue on the embedded database", () => {
  let directory: string;

  beforeAll(async () => {
    directory = await fillDataDirectory(mkdtempSync(join(tmpdir(), "hyperscale-queue-")));
  });

  afterAll(() => {
    rmSync(directory, { recursive: true, force: true });
  });

  it("has every acknowledged submit after SIGKILL in the middle of 400, and rejects a second process", async () => {
    const first = new NodeProcess([
      "--data-dir",
      directory,
      "--max-parallel",
      "1",
      "--log-level",
      "warn",
    ]);
    const { url, role } = await first.ready;
    expect(role).toBe("leader");
    const second = new NodeProcess(["--data-dir", directory]);
    await expect(second.ready).rejects.toThrow(/in use by process \d+/);
    const client = new QueueClient(url);
    const acknowledged: string[] = [];
    // Few at a time: each has the time of one call, also where the machine is slow.
    let next = 0;
    const submitter = async (): Promise<void> => {
      while (next < SUBMITS) {
        const input = { ms: 1, result: next++ };
        const task = await client.submit({ executor: "sleep", input });
        acknowledged.push(task.id);
        if (acknowledged.length === SUBMITS / 2) first.signal("SIGKILL");
      }
    };
    await Promise.allSettled(Array.from({ length: SUBMITTERS }, submitter));
    client.close();
    await first.end();
    expect(acknowledged.length).toBeGreaterThanOrEqual(SUBMITS / 2);
    expect(acknowledged.length).toBeLessThan(SUBMITS);
    const again = new NodeProcess([
      "--data-dir",
      directory,
      "--log-level",
      "warn",
      "--max-parallel",
      "50",
    ]);
    const restarted = await again.ready;
    const after = new QueueClient(restarted.url);
    const found = new Set<string>();
    for (let before: string | undefined; ; ) {
      const page = await after.list({ limit: 1_000, ...(before === undefined ? {} : { before }) });
      for (const task of page) found.add(task.id);
      before = page.at(-1)?.id;
      if (page.length < 1_000) break;
    }
    expect(acknowledged.filter((id) => !found.has(id))).toEqual([]);
    after.close();
    expect(await again.end("SIGTERM")).toBe(0);
  });

  it("continues with the next id after a clean stop", async () => {
    const ids: number[] = [];
    for (const _ of [1, 2]) {
      const node = new NodeProcess(["--data-dir", directory, "--log-level", "warn"]);
      const client = new QueueClient((await node.ready).url);
      ids.push(Number((await client.submit({ executor: "sleep", input: { ms: 1 } })).id));
      client.close();
      expect(await node.end("SIGTERM")).toBe(0);
    }
    expect(ids[1]).toBe((ids[0] ?? 0) + 1);
  });
});
