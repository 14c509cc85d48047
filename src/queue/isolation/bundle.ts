/** A user's executors file, TypeScript or JavaScript, bundled as one module that processes load. */

import { chmodSync, chownSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { Plugin } from "esbuild";
import { errorText } from "../../core/base/error-text.ts";
import { QueueError } from "../../core/queue/errors.ts";
import type { ExecutorUser } from "../../host/executor-user.ts";

export interface ExecutorsBundle {
  readonly module: string;
  /** Deletes it from the disk. */
  readonly remove: () => void;
}

/** `user` may read the bundle and not change it; null leaves it to the user of this process. */
export async function bundleExecutors(
  file: string,
  user: ExecutorUser | null,
): Promise<ExecutorsBundle> {
  const path = resolve(file);
  const folder = mkdtempSync(join(tmpdir(), "hyperscale-executors-"));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  const module = join(folder, "executors.mjs");
  try {
    const { build } = await import("esbuild");
    await build({
      entryPoints: [path],
      bundle: true,
      platform: "node",
      format: "esm",
      target: "node20",
      outfile: module,
      sourcemap: "inline",
      logLevel: "silent",
      // CommonJS packages `require` Node's modules, resolved from the source file.
      banner: {
        js: `import { createRequire as __from } from "node:module"; const require = __from(${JSON.stringify(path)});`,
      },
      plugins: [ownPackage],
    });
    if (user !== null) letRead(user, { folder, module });
    return { module, remove };
  } catch (error) {
    remove();
    const reason = errorText(error);
    throw new QueueError("INVALID_PARAMS", `cannot load executors from ${path}: ${reason}`, {
      cause: error,
    });
  }
}

function letRead({ gid }: ExecutorUser, place: { folder: string; module: string }): void {
  for (const path of Object.values(place)) chownSync(path, 0, gid);
  chmodSync(place.module, 0o640);
  chmodSync(place.folder, 0o750);
}

/** A built file of this module or of its parent: beside this one, or in dist/ when run from source. */
export function builtFile(path: string): URL {
  const here = new URL(path, import.meta.url);
  if (existsSync(fileURLToPath(here))) return here;
  return new URL(here.href.replace(/\/src\/queue\//, "/dist/queue/"));
}

/** `hyperscalejs/queue` resolves to this very program, wherever the file is. */
const ownPackage: Plugin = {
  name: "own-package",
  setup(build) {
    build.onResolve({ filter: /^hyperscale(js)?\/queue$/ }, () => ({
      path: builtFile("../index.js").href,
      external: true,
    }));
  },
};
