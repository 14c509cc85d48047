/** Builds and starts the target server, and reads its count of requests. */

import { spawnSync } from "node:child_process";
import { request } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Measured } from "./processes.ts";
import { temporaryFolder } from "./temporary.ts";

const here = fileURLToPath(new URL(".", import.meta.url));

export interface Target {
  readonly url: string;
  /** What it is made of: "C" or "Node". */
  readonly made: string;
  count(): Promise<number>;
  close(): Promise<void>;
}

export async function startTarget(core: number | undefined): Promise<Target> {
  const binary = compile();
  const [file, args] =
    binary === null ? [process.execPath, [join(here, "target-server.mjs")]] : [binary, []];
  const server = new Measured({ file, args, ...(core === undefined ? {} : { core }) });
  const port = Number(await server.firstLine());
  if (!(port > 0)) throw new Error(`the target did not start: ${server.ended ?? "no port"}`);
  const url = `http://127.0.0.1:${port}/`;
  return {
    url,
    made: binary === null ? "Node (no C compiler found)" : "C",
    count: () => readCount(port),
    close: () => server.kill(),
  };
}

/** Null without a C compiler. */
function compile(): string | null {
  const binary = join(temporaryFolder(), "target");
  const source = join(here, "target.c");
  for (const compiler of ["cc", "gcc", "clang"]) {
    const built = spawnSync(compiler, ["-O2", "-Wall", "-o", binary, source], { encoding: "utf8" });
    if (built.status === 0) return binary;
    if (built.error === undefined) process.stderr.write(built.stderr);
  }
  return null;
}

function readCount(port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port, path: "/count", agent: false }, (response) => {
      response.setEncoding("utf8");
      let text = "";
      response.on("data", (part: string) => {
        text += part;
      });
      response.on("end", () => resolve(Number(text)));
    });
    sent.on("error", reject);
    sent.end();
  });
}
