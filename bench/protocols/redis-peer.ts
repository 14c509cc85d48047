/** `redis-benchmark` of the server's own package: one thread, no pipelining. */

import { spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { redisProgram } from "../../src/protocols/redis/testing/server.ts";
import type { Side } from "./cases.ts";

export function redisBenchmark(port: number, connections: number): Side {
  let cpuMicros = 0;
  return {
    cpuMicros: () => cpuMicros,
    run: async (operations) => {
      if (redisProgram === null) throw new Error("there is no redis-server");
      const program = join(dirname(redisProgram.path), "redis-benchmark");
      const line =
        `TIMEFORMAT='cpu %U %S'; time ${program} -p ${port} -c ${connections} ` +
        `-n ${operations} -q GET price`;
      const done = spawnSync("bash", ["-c", line], {
        encoding: "utf8",
        env: redisProgram.environment,
      });
      const [, user, system] = /cpu ([\d.]+) ([\d.]+)/.exec(done.stderr) ?? [];
      if (done.status !== 0 || user === undefined) throw new Error(`${done.stdout}${done.stderr}`);
      cpuMicros = (Number(user) + Number(system)) * 1e6;
    },
  };
}
