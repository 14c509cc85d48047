/** Output whose reader has left, as behind `| head -1`. */

import { afterAll, beforeAll, expect, it } from "vitest";
import { type DemoTarget, startDemoTarget } from "../../src/demo/server.ts";
import { Scratch } from "./cli.ts";

let demo: DemoTarget;
let here: Scratch;

beforeAll(async () => {
  demo = await startDemoTarget({ port: 0 });
  here = new Scratch();
  // A checkout that is not built says on stderr that it builds.
  await here.start(["--help"]).done;
});
afterAll(async () => {
  here.remove();
  await demo.close();
});

/** With a reader that leaves before the command has printed anything. */
async function unread(args: readonly string[]): Promise<{ code: number | null; stderr: string }> {
  const command = here.start(args);
  command.child.stdout?.destroy();
  const { code, stderr } = await command.done;
  return { code, stderr };
}

it("a command that only prints exits silently", async () => {
  expect(await unread(["reporters"])).toEqual({ code: 1, stderr: "" });
});

it("a run continues to its results and its verdict", async () => {
  const load = ["--vus", "1", "--duration", "1s", "--ui", "ci", "--out", "unread"];
  expect(await unread(["run", demo.url, ...load])).toEqual({ code: 0, stderr: "" });
  expect(here.files("unread")).toEqual(["junit.xml", "report.html", "summary.json"]);
});
