/** The same tests on both stores: PostgreSQL, and the embedded one with nothing set up. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe } from "vitest";
import { type Executors, QueueClient, type QueueNode } from "../../../src/queue/index.ts";
import { needs } from "../../needs.ts";
import { fillDataDirectory } from "./data-directory.ts";
import { calmSettings, startNode } from "./fixtures.ts";
import { NO_POSTGRES, TestPostgres } from "./server.ts";

/** A separate queue: one node that leads and works. */
type OpenQueue = (executors: Executors) => Promise<QueueClient>;

export function onBothStores(name: string, tests: (open: OpenQueue) => void): void {
  describe(`${name}, embedded`, () => {
    const directory = mkdtempSync(join(tmpdir(), "hyperscale-queue-"));
    let queues = 0;
    afterAll(() => rmSync(directory, { recursive: true, force: true }));
    tests(
      opening(async () => ({
        dataDirectory: await fillDataDirectory(join(directory, String(++queues))),
      })),
    );
  });
  describe(`${name}, PostgreSQL`, needs(TestPostgres.available(), NO_POSTGRES), () => {
    let server: TestPostgres;
    beforeAll(async () => {
      server = await TestPostgres.start();
    });
    afterAll(() => server.stop());
    tests(opening(async () => ({ database: await server.createQueue() })));
  });
}

function opening(
  store: () => Promise<{ dataDirectory: string } | { database: string }>,
): OpenQueue {
  const nodes: QueueNode[] = [];
  const clients: QueueClient[] = [];
  afterEach(async () => {
    for (const client of clients.splice(0)) client.close();
    for (const node of nodes.splice(0)) await node.stop(0);
  });
  return async (executors) => {
    const node = await startNode({ ...(await store()), executors, settings: calmSettings });
    nodes.push(node);
    const client = new QueueClient(node.url);
    clients.push(client);
    return client;
  };
}
