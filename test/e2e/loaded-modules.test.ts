/**
 * Modules loaded by a plain run: of the reporters only those for the files of every run, and no back-end (REP-6); of
 * the protocols only those that come with `hyperscale` itself, and no package that is a protocol's driver.
 */

import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Scratch } from "./cli.ts";

/** Prints each module that Node loads, in the command and in its executor cores. */
const HOOK = `import { register } from "node:module";
const hooks = \`import { appendFileSync } from "node:fs";
export async function load(url, context, next) {
  appendFileSync(process.env.LOADED_MODULES, url + "\\\\n");
  return next(url, context);
}\`;
register("data:text/javascript," + encodeURIComponent(hooks));
`;

describe("a run", () => {
  const here = new Scratch();
  const server = createServer((_, response) => response.end("ok"));
  const before = { ...process.env };
  let url = "";

  beforeAll(async () => {
    here.write("hook.mjs", HOOK);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => {
    process.env = before;
    server.closeAllConnections();
    server.close();
    here.remove();
  });

  /** Our modules as paths below src, read from the bundles that were loaded, and names of packages. */
  async function loadedBy(...flags: readonly string[]): Promise<readonly string[]> {
    const list = join(here.path, `loaded-${flags.length}.txt`);
    process.env["NODE_OPTIONS"] = `--import=${pathToFileURL(join(here.path, "hook.mjs")).href}`;
    process.env["LOADED_MODULES"] = list;
    const load = ["--vus", "1", "--iterations", "1", "--out", "out"];
    expect((await here.run("run", url, ...load, ...flags)).code).toBe(0);
    const urls = new Set(readFileSync(list, "utf8").trim().split("\n"));
    const modules = [...urls].flatMap((one) => {
      const name = /\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(one)?.[1];
      if (name !== undefined || !one.includes("/dist/")) return name ?? one;
      const bundle = readFileSync(new URL(one), "utf8");
      return [...bundle.matchAll(/^\/\/ src\/(\S+)\.ts$/gm)].map(([, module = ""]) => module);
    });
    return [...new Set(modules)];
  }

  it("without reports loads what writes its own files, and no back-end or pipeline", async () => {
    const loaded = await loadedBy();
    expect(loaded).toContain("runner/run");
    expect(loaded).toContain("engine/core");
    const reporters = loaded.filter((one) => one.startsWith("reporters/")).sort();
    const files = ["csv", "html", "junit", "output", "packed", "summary-json"];
    expect(reporters).toEqual(files.map((file) => `reporters/file/${file}`));
  });

  it("over HTTP loads no protocol with its own import, and no driver of one", async () => {
    const loaded = await loadedBy();
    const folders = loaded.flatMap((one) => /^protocols\/([a-z0-9]+)\//.exec(one)?.[1] ?? []);
    expect([...new Set(folders)].sort()).toEqual([
      "graphql",
      "http",
      "http1",
      "http2",
      "net",
      "websocket",
    ]);
    const { peerDependencies } = JSON.parse(
      readFileSync(new URL("../../package.json", import.meta.url), "utf8"),
    ) as { readonly peerDependencies: Readonly<Record<string, string>> };
    const drivers = ["pg", ...Object.keys(peerDependencies)];
    expect(drivers).toContain("amqplib");
    expect(drivers.filter((one) => loaded.includes(one))).toEqual([]);
  });

  it("with one loads that family alone", async () => {
    const loaded = await loadedBy("--report", "ndjson=points.ndjson");
    const families = loaded.flatMap(
      (one) => /^reporters\/([a-z]+)\/reporters$/.exec(one)?.[1] ?? [],
    );
    expect(families).toEqual(["file"]);
  });
});
