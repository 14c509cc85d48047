/**
 * A real process on a real pseudo-terminal (made by `script` of util-linux): however it ends, the terminal is restored.
 * Runs on real time because processes do.
 */

import { spawn, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { needs } from "../../test/needs.ts";
import { ENTER, LEAVE } from "./screen.ts";

const FIXTURE = fileURLToPath(new URL("./testing/exit-fixture.ts", import.meta.url));
const hasScript = spawnSync("script", ["--version"]).status === 0;

interface Ending {
  readonly output: string;
  readonly code: number | null;
}

/** Runs the fixture; types `keys` once the picture is up. */
function run(way: string, keys = ""): Promise<Ending> {
  const command = `stty rows 24 cols 80; exec '${process.execPath}' --import tsx '${FIXTURE}' ${way}`;
  const child = spawn("script", ["-qec", command, "/dev/null"], {
    env: { ...process.env, TERM: "xterm-256color", CI: "" },
  });
  // The process may end before it has read them.
  child.stdin.on("error", () => undefined);
  let output = "";
  let typed = false;
  child.stdout.on("data", (chunk: Buffer) => {
    output += chunk.toString();
    if (!typed && output.includes("RUNNING")) {
      typed = true;
      child.stdin.write(keys);
    }
  });
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve({ output, code }));
  });
}

function afterLeave(output: string): string {
  expect(output.split(ENTER)).toHaveLength(2);
  expect(output.split(LEAVE)).toHaveLength(2);
  return output.slice(output.indexOf(LEAVE));
}

it.concurrent.each([
  ["finish", "", 0, "out/report.html"],
  ["exit", "", 5, ""],
  ["throw", "", 1, "a defect in the run"],
  ["reject", "", 1, "a rejection in the run"],
  ["signal", "", 3, "ended by SIGTERM"],
  ["key", "\x03", 3, "ended by SIGINT"],
  ["key", "q", 4, "out/report.html"],
])(
  "restores the terminal when a run ends by %s %j",
  needs(hasScript, "no script (package bsdutils)"),
  async (way, keys, code, last) => {
    const ending = await run(way, keys);
    expect(afterLeave(ending.output)).toContain(last);
    expect(ending.code).toBe(code);
  },
);
