// Builds dist/: declarations (tsc), JavaScript bundled per entry point with shared chunks (esbuild), SQL files, and
// one self-contained HTML file per web page. Types are checked by `npm run check`, not here. The new folder is
// written beside the old one and renamed, so a command that starts meanwhile finds one or the other, whole.

import { spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join, relative } from "node:path";
import { build } from "esbuild";
import { root } from "./bootstrap.mjs";
import { buildPage } from "./build-page.mjs";

const target = join(root, `dist.${process.pid}`);
const sources = join(root, "src");
process.on("exit", () => rmSync(target, { recursive: true, force: true }));

const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
const declared = spawnSync(
  process.execPath,
  [tsc, "-p", "tsconfig.build.json", "--outDir", target],
  { cwd: root, stdio: "inherit" },
);
if (declared.status !== 0) process.exit(declared.status ?? 1);

/** Modules that are loaded by address: exported by package.json, started as processes or threads, or used in bench/. */
const ENTRIES = [
  "index",
  "queue/index",
  "client/index",
  "cli/main",
  "cli/commands/ledger-node",
  "engine/core-main",
  "queue/isolation/child-main",
  "runner/submission",
  ...readdirSync(join(sources, "protocols"))
    .filter((name) => existsSync(join(sources, "protocols", name, "index.ts")))
    .map((name) => `protocols/${name}/index`),
];

/** Bundled because loading its many files takes longer than loading all of ours. */
const BUNDLED_PACKAGE = "zod";

/**
 * Gives each module the address it would have unbundled, so that it finds files beside it from whichever chunk it
 * ends up in.
 */
const moduleAddresses = {
  name: "module-addresses",
  setup({ onLoad }) {
    onLoad({ filter: /\.ts$/ }, ({ path }) => {
      const text = readFileSync(path, "utf8");
      if (!text.includes("import.meta.url")) return undefined;
      const own = relative(sources, path).replace(/\.ts$/, ".js");
      const address = `__chunkUrl.replace(/^(.*\\/dist\\/).*$/s, "$1${own}")`;
      const declaration = `const { url: __chunkUrl } = import.meta, __moduleUrl = ${address}; `;
      return { contents: declaration + text, loader: "ts" };
    });
  },
};

const externalPackages = {
  name: "external-packages",
  setup({ onResolve }) {
    onResolve({ filter: /^[^./]/ }, ({ path, kind }) =>
      kind === "entry-point" || path.startsWith(BUNDLED_PACKAGE)
        ? undefined
        : { path, external: true },
    );
  },
};

await build({
  entryPoints: ENTRIES.map((name) => join(sources, `${name}.ts`)),
  outbase: sources,
  outdir: target,
  bundle: true,
  splitting: true,
  chunkNames: "chunks/[name]-[hash]",
  format: "esm",
  platform: "node",
  target: "node20",
  sourcemap: true,
  define: { "import.meta.url": "__moduleUrl" },
  plugins: [moduleAddresses, externalPackages],
  logLevel: "warning",
});
cpSync(
  join(root, "node_modules", BUNDLED_PACKAGE, "LICENSE"),
  join(target, "chunks", `${BUNDLED_PACKAGE}.LICENSE`),
);

// SQL is read at run time from beside the code.
const sql = join("queue", "store", "sql");
cpSync(join(sources, sql), join(target, sql), { recursive: true });

mkdirSync(join(target, "web"), { recursive: true });
for (const page of readdirSync(join(root, "web"), { withFileTypes: true })) {
  const folder = join(root, "web", page.name);
  const entry = ["main.tsx", "main.ts"]
    .map((name) => join(folder, name))
    .find((file) => existsSync(file));
  if (entry === undefined) continue;
  writeFileSync(join(target, "web", `${page.name}.html`), await buildPage(folder, entry));
}
writeFileSync(join(target, ".built"), "");

const old = `${target}.old`;
if (existsSync(join(root, "dist"))) renameSync(join(root, "dist"), old);
renameSync(target, join(root, "dist"));
rmSync(old, { recursive: true, force: true });
