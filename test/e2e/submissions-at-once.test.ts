/** A program that submits many files at once: each is read by a process, and these must not starve each other. */

import { afterAll, expect, it } from "vitest";
import type { ClusterClient } from "../../src/client/client.ts";
import { Cluster } from "../../src/client/cluster.ts";
import { Scratch } from "./cli.ts";

const SUBMISSIONS = 6;
const here = new Scratch();
afterAll(() => here.remove());

/** Loading it takes a while, and prints a line before and after. */
const FILE = `
import { appendFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
const note = (text) => appendFileSync(${JSON.stringify(`${here.path}/loads`)}, text + "\\n");
note("begins");
await setTimeout(500);
note("ends");
export default { kind: "none" };
`;

it("reads no more than two of them at a time", async () => {
  here.write("flow.mjs", FILE);
  const client = { submit: async () => "job" } as unknown as ClusterClient;
  const cluster = new Cluster(client, "me");
  const file = `${here.path}/flow.mjs`;
  // The file exports no workflow: it is rejected once it has been read.
  const submissions = Array.from({ length: SUBMISSIONS }, () => cluster.submit(file));
  const ended = await Promise.allSettled(submissions);
  expect(ended.map(({ status }) => status)).toEqual(Array(SUBMISSIONS).fill("rejected"));
  let [now, most] = [0, 0];
  for (const line of here.read("loads").trim().split("\n")) {
    now += line === "begins" ? 1 : -1;
    most = Math.max(most, now);
  }
  expect(most).toBeLessThanOrEqual(2);
});
