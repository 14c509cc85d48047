/** TLS between clients and nodes, and between nodes: certificates of an authority that these tests make. */

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type NodeOptions, QueueClient } from "../../../src/queue/index.ts";
import { needs } from "../../needs.ts";
import {
  Authority,
  type CertificateFiles,
  hasOpenssl,
  NO_OPENSSL,
} from "../cluster/certificates.ts";
import { calmSettings, NodeProcess, queueBench, runQueue } from "./fixtures.ts";
import { NO_POSTGRES, TestPostgres } from "./server.ts";

const runnable = TestPostgres.available() && hasOpenssl;

describe("TLS of the queue", needs(runnable, hasOpenssl ? NO_POSTGRES : NO_OPENSSL), () => {
  const bench = queueBench();
  let folder: string;
  let files: CertificateFiles;
  let ca: string;
  let tls: NonNullable<NodeOptions["tls"]>;

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "hyperscale-tls-"));
    files = new Authority(folder).signLoopback();
    ca = readFileSync(files.ca, "utf8");
    const [cert, key] = [readFileSync(files.cert, "utf8"), readFileSync(files.key, "utf8")];
    tls = { certificate: { cert, key }, ca };
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it("carries calls, work and followed output between nodes and to clients", async () => {
    const database = await bench.database();
    const settings = { ...calmSettings, maxParallel: 0 };
    const leader = await bench.node({ database, tls, settings });
    const says = (_: unknown, { log }: { log(text: string): void }): string => {
      log("over TLS");
      return "done";
    };
    const executors = { says };
    const worker = await bench.node({
      ...{ database, tls, role: "worker", executors, settings: calmSettings },
    });
    expect([leader.url, worker.url]).toEqual([
      expect.stringMatching(/^https:/),
      expect.stringMatching(/^https:/),
    ]);
    const client = bench.keep(new QueueClient(worker.url, { ca }));
    const task = await client.submit({ executor: "says" });
    const lines: unknown[] = [];
    const done = await client.wait(task.id, undefined, (message) => {
      if (message.event === "log") lines.push(message.data);
    });
    expect(done).toMatchObject({ state: "SUCCEEDED", last_assigned_node: worker.nodeId });
    expect(lines).toMatchObject([{ message: "over TLS" }]);
  });

  it("rejects clients that do not know the authority, and those without TLS", async () => {
    const node = await bench.node({ database: await bench.database(), tls });
    const strange = bench.keep(new QueueClient(node.url));
    await expect(strange.status()).rejects.toThrow(/--tls-ca names the file of the authority/);
    const plain = bench.keep(new QueueClient(node.url.replace("https:", "http:")));
    await expect(plain.status()).rejects.toThrow(/cannot reach the queue node/);
  });

  it("continues with the next of several addresses, with TLS and without", async () => {
    const database = await bench.database();
    const secure = await bench.node({ database, tls, settings: calmSettings });
    const plain = await bench.node({ database, tls: { ca }, settings: calmSettings });
    const urls = ["https://127.0.0.1:9", secure.url, plain.url];
    const client = bench.keep(new QueueClient(urls, { ca }));
    const first = await client.submit({ executor: "sleep", input: { ms: 1 } });
    expect((await client.wait(first.id)).state).toBe("SUCCEEDED");
    // Over the node without a certificate, which passes it on to the leader by TLS.
    const other = bench.client(plain);
    const task = await other.submit({ executor: "sleep", input: { ms: 1 } });
    expect((await other.wait(task.id)).state).toBe("SUCCEEDED");
    await secure.stop(1_000);
    const last = await client.submit({ executor: "sleep", input: { ms: 1 } });
    expect((await client.wait(last.id)).state).toBe("SUCCEEDED");
  });

  it("is started and called by files on the command line", async () => {
    const data = ["--data-dir", join(folder, "data"), "--database", await bench.database()];
    const certificate = ["--tls-cert", files.cert, "--tls-key", files.key];
    const args = [...data, ...certificate, "--tls-ca", files.ca];
    const { url } = await bench.keep(new NodeProcess(args)).ready;
    expect(url).toMatch(/^https:/);
    const status = await runQueue("status", "--url", url, "--tls-ca", files.ca, "--json");
    expect(JSON.parse(status.stdout)).toMatchObject({ leader: { url } });
    const half = runQueue("start", "--open", ...data, "--tls-cert", files.cert);
    await expect(half).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--tls-cert and --tls-key belong together"),
    });
    const other = new Authority(mkdtempSync(join(folder, "other-"))).signLoopback();
    const unlike = ["--tls-cert", files.cert, "--tls-key", other.key];
    const wrong = runQueue("start", "--listen", "127.0.0.1:0", "--open", ...data, ...unlike);
    await expect(wrong).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringContaining("certificate, key and authority do not fit"),
    });
  });
});
