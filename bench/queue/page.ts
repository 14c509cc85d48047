/** Size of one page of the task list with tasks of maximal size. */

import { startNode } from "./ours.ts";
import { Latch } from "./peers.ts";

const TASKS = 50;
const PAYLOAD_CHARACTERS = 1_000_000;

/** Bytes of the answer to list_tasks for the newest 50 tasks, each with an input and a result of 1 MB. */
export async function benchListPage(url: string): Promise<number> {
  const latch = new Latch(TASKS);
  const echo = (input: unknown): unknown => {
    latch.hit();
    return input;
  };
  const node = await startNode(url, { echo }, {});
  for (let i = 0; i < TASKS; i++) {
    await call(node.url, "submit_task", {
      executor: "echo",
      input: String(i).padEnd(PAYLOAD_CHARACTERS, "x"),
    });
  }
  await latch.reached;
  while ((await node.reader.counts()).SUCCEEDED < TASKS)
    await new Promise((resolve) => setTimeout(resolve, 50));
  const answer = await call(node.url, "list_tasks", { limit: TASKS });
  const { result } = JSON.parse(answer) as { readonly result: readonly unknown[] };
  if (result.length !== TASKS) throw new Error(`the page lists ${result.length} tasks`);
  await node.stop(0);
  return Buffer.byteLength(answer);
}

async function call(url: string, method: string, params: object): Promise<string> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  });
  const text = await response.text();
  if (!response.ok || text.includes('"error":{')) throw new Error(text.slice(0, 200));
  return text;
}
