/** A server that rejects the login: the run goes on, and no connection outlives it. */

import { createServer, type Socket } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { syntheticRun } from "../../core/load/results/testing/synthetic-run.ts";
import { openReporting } from "../registry.ts";

const run = syntheticRun({ seed: "refused", seconds: 2, rate: 0.2 });
const taken: Socket[] = [];
const server = createServer((socket) => {
  taken.push(socket);
  socket.on("data", () => socket.write("-WRONGPASS no entry\r\n"));
  socket.on("error", () => {});
});

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});
afterAll(async () => {
  for (const socket of taken) socket.destroy();
  await new Promise((resolve) => server.close(resolve));
});

it("ends the connection on which the login was refused", async () => {
  const { port } = server.address() as { readonly port: number };
  const reporting = await openReporting(["redis=env:URL"], {
    env: { URL: `redis://ada:s3cret-0123@127.0.0.1:${port}` },
    onProblem: () => {},
  });
  await reporting.start(run);
  const { reports } = await reporting.finish(run);
  expect(reports?.[0]).toMatchObject({ sent: 0, problem: "WRONGPASS no entry" });
  expect(taken.length).toBeGreaterThan(0);
  // A connection that stays open would keep the process of the run alive, and this test waiting.
  await Promise.all(
    taken.map((socket) => socket.closed || new Promise((resolve) => socket.once("close", resolve))),
  );
});
