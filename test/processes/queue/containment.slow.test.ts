/** Isolation by a node: its files, its API, and the faults of one executor. Embedded store. */

import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { QueueClient } from "../../../src/queue/index.ts";
import { fillDataDirectory } from "./data-directory.ts";
import { eventually, NodeProcess } from "./fixtures.ts";

describe("what a node keeps to itself", () => {
  let directory: string;
  const nodes: NodeProcess[] = [];

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "hyperscale-queue-"));
  });
  afterEach(async () => {
    for (const node of nodes.splice(0)) await node.end();
    rmSync(directory, { recursive: true, force: true });
  });

  async function start(args: readonly string[], access?: readonly string[]) {
    const data = join(directory, "data");
    // The first test is about what a node itself makes of a directory.
    if (access === undefined) await fillDataDirectory(data);
    const node = new NodeProcess(["--data-dir", data, ...args], {}, access);
    nodes.push(node);
    return { node, data, url: (await node.ready).url };
  }

  it("asks for a token by default, that only its user can read, and so with all its files", async () => {
    const { url, data, node } = await start([], []);
    const stranger = new QueueClient(url);
    await expect(stranger.submit({ executor: "sleep", input: { ms: 1 } })).rejects.toThrow(/token/);
    stranger.close();
    const token = readFileSync(join(data, "token"), "utf8").trim();
    const client = new QueueClient(url, { token });
    const task = await client.submit({ executor: "sleep", input: { ms: 1 } });
    expect((await client.wait(task.id)).state).toBe("SUCCEEDED");
    client.close();
    expect(statSync(data).mode & 0o777).toBe(0o700);
    const open = readdirSync(data, { recursive: true, encoding: "utf8" }).filter(
      (name) => (statSync(join(data, name)).mode & 0o077) !== 0,
    );
    expect(open).toEqual([]);
    expect(node.stderr).toMatch(/not over a power cut/);
    // The token is the same after a restart: clients need no new one.
    await node.end("SIGTERM");
    await start([], []);
    expect(readFileSync(join(data, "token"), "utf8").trim()).toBe(token);
  });

  it("fails the one task whose executor leaves an error behind, and continues", async () => {
    const file = join(directory, "executors.ts");
    writeFileSync(
      file,
      `export default {
         rejects: () => { Promise.reject(new Error("stray")); return new Promise(() => undefined); },
         throws: () => { setTimeout(() => { throw new Error("thrown later"); }, 5);
                         return new Promise(() => undefined); },
         calm: () => new Promise((resolve) => setTimeout(() => resolve("calm"), 1500)),
       };`,
    );
    const { url, node } = await start(["--executors", file]);
    const client = new QueueClient(url);
    const calm = await client.submit({ executor: "calm" });
    const rejects = await client.submit({ executor: "rejects", max_attempts: 1 });
    const throws = await client.submit({ executor: "throws", max_attempts: 1 });
    expect(await client.wait(rejects.id)).toMatchObject({
      state: "FAILED",
      error: { message: expect.stringMatching(/nobody caught: stray/), stack: expect.any(String) },
    });
    expect(await client.wait(throws.id)).toMatchObject({
      state: "FAILED",
      error: { message: expect.stringMatching(/nobody caught: thrown later/) },
    });
    expect(await client.wait(calm.id)).toMatchObject({ state: "SUCCEEDED", attempt_id: 1 });
    expect(node.alive).toBe(true);
    client.close();
  });

  it("continues beside an endless loop and a lack of memory, and leaves no process when it is killed", async () => {
    const file = join(directory, "executors.ts");
    const pids = join(directory, "pids");
    writeFileSync(
      file,
      `import { appendFileSync } from "node:fs";
       export default {
         loops: () => { appendFileSync(${JSON.stringify(pids)}, process.pid + "\\n"); for (;;); },
         eats: () => { const all = []; for (;;) all.push(new Array(10_000).fill(all.length)); },
         calm: () => "calm",
       };`,
    );
    // Another user could not write into the directory of this test.
    const limits = ["--executor-memory", "64", "--executor-user", "root"];
    const { url, node } = await start(["--executors", file, ...limits]);
    const client = new QueueClient(url);
    await client.submit({ executor: "loops" });
    const eats = await client.submit({ executor: "eats", max_attempts: 2 });
    expect(await client.wait(eats.id)).toMatchObject({
      ...{ state: "FAILED", attempt_id: 2 },
      error: { message: "it needed more memory than its process may have (64 MiB)" },
    });
    const calm = await client.submit({ executor: "calm" });
    expect(await client.wait(calm.id)).toMatchObject({ result: "calm", attempt_id: 1 });
    client.close();
    await node.end("SIGKILL");
    const pid = Number(readFileSync(pids, "utf8").trim());
    await eventually("the loop ends", async () => {
      try {
        process.kill(pid, 0);
        return false;
      } catch {
        return true;
      }
    });
  });

  it("stops the load of a test whose node was killed", async () => {
    let requests = 0;
    const target = createServer((_, response) => {
      requests++;
      response.end("ok");
    });
    await new Promise<void>((resolve) => target.listen(0, "127.0.0.1", resolve));
    const { port } = target.address() as AddressInfo;
    const { url, node } = await start([]);
    const client = new QueueClient(url);
    const args = ["--rate", "50", "--duration", "10m", "--cores", "1"];
    await client.submit({
      executor: "loadtest",
      input: { file: `http://127.0.0.1:${port}/`, args },
    });
    await eventually("load comes", async () => requests > 20);
    client.close();
    await node.end("SIGKILL");
    await eventually("the load ends", async () => {
      const before = requests;
      await new Promise((resolve) => setTimeout(resolve, 3_000));
      return requests === before;
    });
    target.closeAllConnections();
    await new Promise((resolve) => target.close(resolve));
  });
});
