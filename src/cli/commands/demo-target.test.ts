/** The real command in a process of its own, because signals and exit codes are the subject. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { afterEach, expect, it } from "vitest";

const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
});

function start(...args: string[]): { child: ChildProcess; output: () => string } {
  const main = new URL("../main.ts", import.meta.url).href;
  const script = `import { main } from ${JSON.stringify(main)}; await main(process.argv.slice(1));`;
  const child = spawn(
    process.execPath,
    ["--import", "tsx", "--input-type=module", "-e", script, "demo-target", ...args],
    { stdio: ["ignore", "pipe", "pipe"] },
  );
  children.push(child);
  let text = "";
  child.stdout?.on("data", (data) => {
    text += data;
  });
  child.stderr?.on("data", (data) => {
    text += data;
  });
  return { child, output: () => text };
}

async function ended(child: ChildProcess): Promise<number | null> {
  const [code] = (await once(child, "close")) as [number | null];
  return code;
}

it("serves until a signal, ends with 0 and frees the port; a taken port is a clear error", async () => {
  const first = start("--port", "0", "--json");
  await once(first.child.stdout ?? first.child, "data");
  const { url, port, pid } = JSON.parse(first.output()) as Record<string, unknown>;
  expect(pid).toBe(first.child.pid);
  expect(await (await fetch(String(url))).text()).toBe("Hyperscale!\n");

  const second = start("--port", String(port));
  expect(await ended(second.child)).toBe(1);
  expect(second.output()).toContain(`port ${port} on 127.0.0.1 is taken`);
  expect(second.output()).toContain("--port 0");

  first.child.kill("SIGTERM");
  expect(await ended(first.child)).toBe(0);
  await expect(fetch(String(url))).rejects.toThrow();
});

it("prints every endpoint and the URL for people, and ends on Ctrl-C with its request counts", async () => {
  const { child, output } = start("--port", "0");
  while (!output().includes("Stop: Ctrl-C")) await once(child.stdout ?? child, "data");
  expect(output()).toMatch(/^Demo target: http:\/\/127\.0\.0\.1:\d+\n/);
  expect(output()).toContain("/stall?ms=1000");
  expect(
    Math.max(
      ...output()
        .split("\n")
        .map((line) => line.length),
    ),
  ).toBeLessThanOrEqual(100);
  child.kill("SIGINT");
  expect(await ended(child)).toBe(0);
  expect(output()).toContain("Stopped by SIGINT after 0 requests");
});

it("rejects an invalid port", async () => {
  const { child, output } = start("--port", "70000");
  expect(await ended(child)).toBe(2);
  expect(output()).toContain("from 0 to 65535");
});
