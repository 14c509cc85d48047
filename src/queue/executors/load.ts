/** Loads a user's executors file: TypeScript or JavaScript, bundled on the fly, default or named exports. */

import { rmSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Plugin } from "esbuild";
import { QueueError } from "../errors.ts";
import type { Executor, Executors } from "../executor.ts";

export async function loadExecutors(file: string): Promise<Executors> {
  const module = await importFile(resolve(file));
  const found: unknown = module["default"] ?? module["executors"] ?? module;
  const executors: Record<string, Executor> = {};
  for (const [name, value] of Object.entries(found ?? {})) {
    if (typeof value === "function") executors[name] = value as Executor;
  }
  if (Object.keys(executors).length === 0) {
    const form = "export default { name: async (input, context) => result }";
    throw new QueueError("INVALID_PARAMS", `${file} exports no executors: ${form}`);
  }
  return executors;
}

async function importFile(path: string): Promise<Readonly<Record<string, unknown>>> {
  // Beside the source, so that its packages are found as it would find them.
  const outfile = join(dirname(path), `.${basename(path)}.${process.pid}.mjs`);
  try {
    const { build } = await import("esbuild");
    await build({
      entryPoints: [path],
      bundle: true,
      packages: "external",
      platform: "node",
      format: "esm",
      target: "node20",
      outfile,
      sourcemap: "inline",
      logLevel: "silent",
      plugins: [ownPackage],
    });
    return (await import(pathToFileURL(outfile).href)) as Readonly<Record<string, unknown>>;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new QueueError("INVALID_PARAMS", `cannot load executors from ${path}: ${reason}`, {
      cause: error,
    });
  } finally {
    rmSync(outfile, { force: true });
  }
}

/** `hyperscale/queue` means this very program, wherever the file lies. */
const ownPackage: Plugin = {
  name: "own-package",
  setup(build) {
    const own = import.meta.url.endsWith(".ts") ? "../index.ts" : "../index.js";
    build.onResolve({ filter: /^hyperscale\/queue$/ }, () => ({
      path: new URL(own, import.meta.url).href,
      external: true,
    }));
  },
};
