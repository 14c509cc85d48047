/** A peer that is a program: its time is reported by the shell. */

import { spawnSync } from "node:child_process";
import type { Program } from "../../src/protocols/testing/real-server.ts";
import type { Side } from "./comparison.ts";

const TIMED = `TIMEFORMAT='cpu %U %S'; time "$0" "$@"`;

/** `isDone` checks its output for completion. */
export function timedProgram(
  { environment, path }: Program,
  args: (operations: number) => readonly string[],
  isDone: (output: string, operations: number) => boolean = () => true,
): Side {
  let cpuMicros = 0;
  return {
    cpuMicros: () => cpuMicros,
    run: async (operations) => {
      const line = ["-c", TIMED, path, ...args(operations)];
      const done = spawnSync("bash", line, { encoding: "utf8", env: environment });
      const [, user, system] = /cpu ([\d.]+) ([\d.]+)/.exec(done.stderr) ?? [];
      if (done.status !== 0 || user === undefined || !isDone(done.stdout, operations))
        throw new Error(`${path}: ${done.stdout}${done.stderr}`);
      cpuMicros = (Number(user) + Number(system)) * 1e6;
    },
  };
}
