/** Tokens of clients, workers and operators: each opens its own, and the one for everything opens everything. */

import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { methodRefusal, TOKEN_SCOPES } from "../../../src/core/queue/permissions.ts";
import { RpcClient } from "../../../src/queue/api/rpc-client.ts";
import type { ClusterStatus } from "../../../src/queue/api/types.ts";
import { QueueClient, QueueError, type QueueNode } from "../../../src/queue/index.ts";
import { fillDataDirectory } from "./data-directory.ts";
import { calmSettings, NodeProcess, runQueue, startNode } from "./fixtures.ts";

const token = "everything-0123456789";
const scopedTokens = {
  client: "clients-0123456789abc",
  worker: "workers-0123456789abc",
  operator: "operators-0123456789a",
};

/** Methods that distinguish the three tokens; a method of the node that none below is allowed is seen as well. */
const ONLY_WORKERS = ["register_node", "acquire_lease", "report_completion", "attach_file"];
const ONLY_OPERATORS = ["cancel_tasks", "delete_tasks", "put_queue", "put_schedule", "set_role"];
const NOT_WORKERS = ["submit_task", "get_task", "list_tasks", "cancel_task", "task_log"];

describe("tokens of the queue", () => {
  let folder: string;
  let node: QueueNode;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "hyperscale-tokens-"));
    const dataDirectory = await fillDataDirectory(folder);
    node = await startNode({ dataDirectory, token, scopedTokens, settings: calmSettings });
  });

  afterAll(async () => {
    await node?.stop(0);
    rmSync(folder, { recursive: true, force: true });
  });

  async function codeOf(method: string, given: string | undefined): Promise<string> {
    const rpc = new RpcClient({ url: node.url, token: given });
    try {
      await rpc.call(method, {});
      return "done";
    } catch (error) {
      if (error instanceof QueueError) return error.code;
      throw error;
    } finally {
      rpc.close();
    }
  }

  async function statusOf(path: string, given: string): Promise<number> {
    const headers = { authorization: `Bearer ${given}` };
    const response = await fetch(new URL(path, node.url), { headers });
    await response.body?.cancel();
    return response.status;
  }

  it("rejects calls beyond each token's rights", async () => {
    const { client, worker, operator } = scopedTokens;
    for (const method of ONLY_WORKERS) {
      expect(await codeOf(method, client), method).toBe("FORBIDDEN");
      expect(await codeOf(method, operator), method).toBe("FORBIDDEN");
      expect(await codeOf(method, worker), method).toBe("INVALID_PARAMS");
    }
    for (const method of ONLY_OPERATORS) {
      expect(await codeOf(method, client), method).toBe("FORBIDDEN");
      expect(await codeOf(method, worker), method).toBe("FORBIDDEN");
      expect(await codeOf(method, operator), method).not.toBe("FORBIDDEN");
    }
    for (const method of NOT_WORKERS) {
      expect(await codeOf(method, worker), method).toBe("FORBIDDEN");
      expect(await codeOf(method, client), method).not.toBe("FORBIDDEN");
    }
    for (const method of [...ONLY_WORKERS, ...ONLY_OPERATORS, ...NOT_WORKERS]) {
      expect(["FORBIDDEN", "UNAUTHORIZED"]).not.toContain(await codeOf(method, token));
      expect(await codeOf(method, "a-stranger-0123456789")).toBe("UNAUTHORIZED");
      expect(await codeOf(method, undefined)).toBe("UNAUTHORIZED");
    }
  });

  it("names the required token, and lets a client work to the end", async () => {
    const client = new QueueClient(node.url, { token: scopedTokens.client });
    const task = await client.submit({ executor: "sleep", input: { ms: 1 } });
    expect(await client.wait(task.id)).toMatchObject({ state: "SUCCEEDED" });
    await expect(client.limitQueue("mail", { paused: true })).rejects.toThrow(
      "the token is for clients, and put_queue is for operators",
    );
    client.close();
    const operator = new QueueClient(node.url, { token: scopedTokens.operator });
    await operator.limitQueue("mail", { paused: true });
    const mail = (await operator.queues()).find(({ queue }) => queue === "mail");
    expect(mail).toMatchObject({ paused: true });
    operator.close();
  });

  it("lets a worker drain and remove no process but its own", async () => {
    const worker = new RpcClient({ url: node.url, token: scopedTokens.worker });
    const operator = new RpcClient({ url: node.url, token: scopedTokens.operator });
    const node_id = node.nodeId;
    const other = { node_id, run: randomUUID() };
    for (const method of ["drain_node", "deregister_node"]) {
      await expect(worker.call(method, { node_id })).rejects.toMatchObject({ code: "FORBIDDEN" });
      await worker.call(method, other).catch(() => undefined);
    }
    const { nodes } = (await operator.call("cluster_status", {})) as ClusterStatus;
    expect(nodes.find((one) => one.node_id === node_id)).toMatchObject({ status: "healthy" });
    for (const rpc of [worker, operator]) rpc.close();
  });

  it("are files on the command line: of a node, and of its callers", async () => {
    const files = mkdtempSync(join(tmpdir(), "hyperscale-token-files-"));
    const keep = (name: string, text: string): string => {
      writeFileSync(join(files, name), text, { mode: 0o600 });
      return join(files, name);
    };
    const operators = keep("operator", scopedTokens.operator);
    const clients = keep("client", scopedTokens.client);
    const data = await fillDataDirectory(join(files, "data"));
    const args = ["--data-dir", data, "--client-token-file", clients];
    const access = ["--token-file", keep("all", token), "--operator-token-file", operators];
    const started = new NodeProcess(args, {}, access);
    try {
      const { url } = await started.ready;
      const call = (file: string, ...rest: string[]) =>
        runQueue(...rest, "--url", url, "--token-file", file);
      const put = ["schedule", "put", "nightly", "0 3 * * *", "sleep"];
      await expect(call(clients, ...put)).rejects.toMatchObject({
        stderr: expect.stringContaining("the token is for clients"),
      });
      await call(operators, ...put);
      const { stdout } = await call(clients, "schedule", "list", "--json");
      expect(JSON.parse(stdout)).toMatchObject([{ schedule_id: "nightly" }]);
    } finally {
      await started.end();
      rmSync(files, { recursive: true, force: true });
    }
  });

  it("reserves metrics for operators, and denies following to workers", async () => {
    const { client, worker, operator } = scopedTokens;
    expect(await statusOf("/metrics", client)).toBe(403);
    expect(await statusOf("/metrics", worker)).toBe(403);
    expect(await statusOf("/metrics", operator)).toBe(200);
    expect(await statusOf("/v1/debug/work", client)).toBe(403);
    expect(await statusOf("/follow", worker)).toBe(403);
    expect(await statusOf("/follow", client)).toBe(200);
    expect(await statusOf("/metrics", token)).toBe(200);
  });

  it("grants every method of a node to some token", async () => {
    const rpc = new RpcClient({ url: node.url, token });
    const refusal = await rpc.call("no_such_method", {}).catch((error: unknown) => String(error));
    rpc.close();
    const methods = /there are: (.*)$/.exec(String(refusal))?.[1]?.split(", ") ?? [];
    expect(methods.length).toBeGreaterThan(30);
    const nobodys = methods.filter((method) =>
      TOKEN_SCOPES.every((scope) => methodRefusal(scope, method) !== null),
    );
    expect(nobodys).toEqual([]);
  });

  it("rejects two equal tokens, and scoped tokens without one for everything", async () => {
    const start = (options: object) =>
      startNode({ dataDirectory: join(folder, "other"), ...options });
    await expect(start({ token, scopedTokens: { client: token } })).rejects.toThrow(/the same/);
    await expect(start({ scopedTokens })).rejects.toThrow(/--open takes away/);
  });
});
