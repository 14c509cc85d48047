/**
 * Turns a workflow file into one module that every core can import: TypeScript and local imports are bundled by esbuild
 * with an inline source map (so that stacks and debuggers show the user's own lines), npm packages stay external and
 * are resolved from the folder of the file.
 */

import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { isBuiltin } from "node:module";
import { tmpdir } from "node:os";
import { basename, dirname, extname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { BuildFailure, Message, Plugin } from "esbuild";
import { OWN_PACKAGE } from "../engine/own-package.ts";
import { RunError } from "./errors.ts";

export interface Bundle {
  /** file:// address. */
  readonly address: string;
  readonly folder: string;
  readonly sha256: string;
  /** Deletes the bundle. */
  remove(): Promise<void>;
}

const EXTENSIONS = [".ts", ".mts", ".js", ".mjs", ".tsx", ".jsx", ".cjs", ".cts"];

export async function bundleWorkflow(file: string): Promise<Bundle> {
  const path = resolve(file);
  await checkFile(file, path);
  const folder = await bundleFolder(path);
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true });
  // Path of the bundle: the source map names its sources relative to it.
  const outfile = join(folder, "bundle.mjs");
  const bytes = await bundled(path, outfile, [ownPackage(ownIndex()), installedPackages]).catch(
    async (error: unknown) => {
      await remove();
      throw error;
    },
  );
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  const target = join(folder, `${basename(path, extname(path))}.mjs`);
  await writeFile(target, bytes);
  return { address: pathToFileURL(target).href, folder: dirname(path), sha256, remove };
}

/** Address of this package for local executor cores: ours when built, in dist/ when tests run from source. */
export function ownIndex(): string {
  const here = new URL("../index.js", import.meta.url);
  return existsSync(here) ? here.href : here.href.replace(/\/src\/index\.js$/, "/dist/index.js");
}

/** The same module for cores on any machine: npm packages are included, and this package has a placeholder name. */
export async function portableBundle(file: string): Promise<Uint8Array> {
  const path = resolve(file);
  await checkFile(file, path);
  const outfile = join(dirname(path), "bundle.mjs");
  return bundled(path, outfile, [ownPackage(OWN_PACKAGE), noAddons]);
}

/** A workflow as one file that `run` on another machine accepts like the user's own. */
export async function workflowSource(file: string): Promise<Uint8Array> {
  const path = resolve(file);
  await checkFile(file, path);
  return bundled(path, join(dirname(path), "bundle.mjs"), [keptPackage, noAddons], "");
}

async function bundled(
  path: string,
  outfile: string,
  plugins: readonly Plugin[],
  banner: string = REQUIRE_BANNER,
): Promise<Uint8Array> {
  const { build } = await import("esbuild");
  const result = await build({
    entryPoints: [path],
    bundle: true,
    write: false,
    platform: "node",
    format: "esm",
    target: "node20",
    sourcemap: "inline",
    sourcesContent: true,
    logLevel: "silent",
    outfile,
    // Base of the file names inside: the same file gives the same bundle from any working directory.
    absWorkingDir: dirname(path),
    plugins: [...plugins, ownAddresses],
    define: Object.fromEntries(Object.entries(ADDRESSES).map(([meta, { name }]) => [meta, name])),
    // Keeps CommonJS idioms working inside the bundle.
    banner: { js: banner },
  }).catch((failure: BuildFailure) => {
    throw new RunError(describe(failure.errors), 2);
  });
  return result.outputFiles[0]?.contents ?? new Uint8Array();
}

const REQUIRE_BANNER =
  'import { createRequire as __createRequire } from "node:module"; const require = __createRequire(import.meta.url);';

/**
 * Resolves `import … from "hyperscalejs"` to the running package, wherever it is installed, and "hyperscalejs/redis" to
 * that protocol in it. `own` is the address of its index. "hyperscale" is an alias for files written before the package
 * was renamed.
 */
const ownPackage = (own: string): Plugin => ({
  name: "hyperscale",
  setup(build) {
    build.onResolve({ filter: /^hyperscale(js)?$/ }, () => ({ path: own, external: true }));
    build.onResolve({ filter: /^hyperscale(js)?\/[a-z0-9-]+$/ }, ({ path }) => {
      const name = path.replace(/^.*\//, "");
      const door = new URL(`./protocols/${name}/index.js`, ownIndex());
      if (!existsSync(door)) return undefined;
      // Addresses are resolved on load: relative to the index.
      return { path: `${own}/../protocols/${name}/index.js`, external: true };
    });
  },
});

/** This package under the names that users import. */
const keptPackage: Plugin = {
  name: "hyperscale",
  setup(build) {
    const own = /^hyperscale(js)?(\/[a-z0-9-]+)?$/;
    build.onResolve({ filter: own }, ({ path }) => ({ path, external: true }));
  },
};

/** Native addons cannot be sent: the worker may be another machine. */
const noAddons: Plugin = {
  name: "addons",
  setup(build) {
    build.onLoad({ filter: /\.node$/ }, ({ path }) => ({
      errors: [{ text: `${basename(path)} is a native addon: a cluster cannot run it` }],
    }));
  },
};

/**
 * Keeps packages under node_modules out of the bundle. One of the same workspace is a link to sources that Node may not
 * be able to run, so it is included like any local file.
 */
const installedPackages: Plugin = {
  name: "packages",
  setup(build) {
    const looking = Symbol("looking");
    build.onResolve(
      { filter: /^[^./]/ },
      async ({ importer, kind, path, pluginData, resolveDir }) => {
        if (pluginData === looking || kind === "entry-point" || isBuiltin(path)) return undefined;
        const found = await build.resolve(path, {
          importer,
          kind,
          pluginData: looking,
          resolveDir,
        });
        const installed = found.errors.length > 0 || /[\\/]node_modules[\\/]/.test(found.path);
        return installed ? { path, external: true } : found;
      },
    );
  },
};

/** Expressions for a module's own address, by their form in the bundle. */
const ADDRESSES: Readonly<
  Record<string, { readonly name: string; readonly of: (path: string) => string }>
> = {
  "import.meta.url": { name: "__moduleUrl", of: (path) => pathToFileURL(path).href },
  "import.meta.dirname": { name: "__moduleDirname", of: dirname },
  "import.meta.filename": { name: "__moduleFilename", of: (path) => path },
};

/** Each file of the user keeps its own address, though all of them end up in one. */
const ownAddresses: Plugin = {
  name: "addresses",
  setup(build) {
    build.onLoad({ filter: /\.[cm]?[jt]sx?$/ }, async ({ path }) => {
      const text = await readFile(path, "utf8");
      const used = Object.entries(ADDRESSES).filter(([meta]) => text.includes(meta));
      if (used.length === 0) return undefined;
      const constants = used.map(
        ([, { name, of }]) => `const ${name} = ${JSON.stringify(of(path))};`,
      );
      // On the first line, so that every other line keeps its number; a #! line must stay the first.
      const at = text.startsWith("#!") ? text.indexOf("\n") + 1 : 0;
      const contents = `${text.slice(0, at)}${constants.join("")}${text.slice(at)}`;
      return { contents, loader: extname(path).replace(/^\.[cm]?/, "") as "ts" | "js" | "tsx" };
    });
  },
};

async function checkFile(file: string, path: string): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  if (found === undefined) throw new RunError(`there is no file ${file}`, 2, hintFor(file));
  if (found.isDirectory()) throw new RunError(`${file} is a folder; name a workflow file`, 2);
  if (!EXTENSIONS.includes(extname(path))) {
    throw new RunError(`${file} is not a workflow file: it must end in .ts, .mts, .js or .mjs`, 2);
  }
}

function hintFor(file: string): string {
  const host = /^(localhost|[\w-]+(\.[\w-]+)+|[\w-]+(?=:\d))(:\d+)?(\/|$)/;
  if (host.test(file) && !/\.(ts|mts|js|mjs)$/.test(file)) {
    return `To load a URL, write its scheme: hyperscale run http://${file}`;
  }
  return `Make one with: hyperscale new ${file}`;
}

/**
 * Creates a private folder for this run: beside the nearest node_modules, so that npm packages resolve from the bundle
 * as from the file; in the temporary folder where there is none.
 */
async function bundleFolder(path: string): Promise<string> {
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    const modules = join(folder, "node_modules");
    if (existsSync(modules)) {
      const made = await newFolderIn(join(modules, ".hyperscale"));
      if (made !== undefined) return made;
    }
    if (folder === dirname(folder)) break;
  }
  return mkdtemp(join(tmpdir(), "hyperscale-bundle-"));
}

async function newFolderIn(cache: string): Promise<string | undefined> {
  try {
    await mkdir(cache, { recursive: true });
    return await mkdtemp(join(cache, "run-"));
  } catch {
    // Not writable, or a read-only disk: try another place.
    return undefined;
  }
}

function describe(errors: readonly Message[]): string {
  return errors
    .map(({ location, text }) => {
      if (location === null) return text;
      const mark = `${" ".repeat(location.column)}^`;
      return `${location.file}:${location.line}:${location.column + 1}: ${text}\n\n  ${location.lineText}\n  ${mark}`;
    })
    .join("\n\n");
}
