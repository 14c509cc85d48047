/** Loads a user's executors file: TypeScript or JavaScript, bundled on the fly, default or named exports. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Plugin } from "esbuild";
import { errorText } from "../../core/base/error-text.ts";
import { QueueError } from "../../core/queue/errors.ts";
import type { Executor, Executors } from "../worker/executor.ts";

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
  const folder = mkdtempSync(join(tmpdir(), "hyperscale-executors-"));
  const outfile = join(folder, "executors.mjs");
  try {
    const { build } = await import("esbuild");
    await build({
      entryPoints: [path],
      bundle: true,
      platform: "node",
      format: "esm",
      target: "node20",
      outfile,
      sourcemap: "inline",
      logLevel: "silent",
      // Packages written as CommonJS ask for Node's modules by `require`, as from the source file.
      banner: {
        js: `import { createRequire as __from } from "node:module"; const require = __from(${JSON.stringify(path)});`,
      },
      plugins: [ownPackage],
    });
    return (await import(pathToFileURL(outfile).href)) as Readonly<Record<string, unknown>>;
  } catch (error) {
    const reason = errorText(error);
    throw new QueueError("INVALID_PARAMS", `cannot load executors from ${path}: ${reason}`, {
      cause: error,
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
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
