/** Builds and starts the target server, and reads its count of requests. */

import { spawnSync } from "node:child_process";
import http from "node:http";
import https from "node:https";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Measured, pinned } from "./processes.ts";
import { temporaryFolder } from "./temporary.ts";

const here = fileURLToPath(new URL(".", import.meta.url));

export interface Target {
  readonly url: string;
  /** Implementation: "C", "nginx", "Node". */
  readonly made: string;
  count(): Promise<number>;
  close(): Promise<void>;
}

/** Files that a server needs to speak TLS. */
export interface TlsFiles {
  readonly certificate: string;
  readonly key: string;
}

export async function startTarget(core: number | undefined): Promise<Target> {
  const binary = compile();
  if (binary === null) return startNodeTarget(core, null);
  return started(new Measured({ file: binary, args: [], ...pinned(core) }), "http", "C");
}

export async function startNodeTarget(
  core: number | undefined,
  files: TlsFiles | null,
): Promise<Target> {
  const args = files === null ? [] : [files.certificate, files.key];
  const server = new Measured({
    file: process.execPath,
    args: [join(here, "target-server.mjs"), ...args],
    ...pinned(core),
  });
  return started(server, files === null ? "http" : "https", "Node");
}

async function started(server: Measured, scheme: string, made: string): Promise<Target> {
  const port = Number(await server.firstLine());
  if (!(port > 0)) throw new Error(`the target did not start: ${server.ended ?? "no port"}`);
  const url = `${scheme}://127.0.0.1:${port}/`;
  const count = async (): Promise<number> => Number(await textOf(`${url}count`));
  return { url, made, count, close: () => server.kill() };
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

/** The body of an answer, on a connection of its own. */
export function textOf(url: string): Promise<string> {
  const { get } = url.startsWith("https:") ? https : http;
  return new Promise((resolve, reject) => {
    const sent = get(url, { agent: false, rejectUnauthorized: false }, (response) => {
      response.setEncoding("utf8");
      let text = "";
      response.on("data", (part: string) => {
        text += part;
      });
      response.on("end", () => resolve(text));
    });
    sent.on("error", reject);
  });
}
