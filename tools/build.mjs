// Builds dist/: type-checked ESM with declarations and source maps (tsc), and the self-contained
// web pages (esbuild) that reports and dashboards are made from. It is made beside the old one and then
// takes its place, so that a command that starts meanwhile finds the one or the other, whole.

import { spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { root } from "./bootstrap.mjs";

const target = join(root, `dist.${process.pid}`);
process.on("exit", () => rmSync(target, { recursive: true, force: true }));
const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
const compiled = spawnSync(
  process.execPath,
  [tsc, "-p", "tsconfig.build.json", "--outDir", target],
  {
    cwd: root,
    stdio: "inherit",
  },
);
if (compiled.status !== 0) process.exit(compiled.status ?? 1);

// SQL and other assets that the code reads at run time travel beside it.
const sql = join("queue", "store", "sql");
cpSync(join(root, "src", sql), join(target, sql), { recursive: true });

// Each folder of web/ with a main.tsx (or main.ts) becomes one HTML file with everything inlined.
const pages = existsSync(join(root, "web"))
  ? readdirSync(join(root, "web"), { withFileTypes: true })
  : [];
for (const page of pages) {
  const entry = ["main.tsx", "main.ts"]
    .map((name) => join(root, "web", page.name, name))
    .find((file) => existsSync(file));
  if (!page.isDirectory() || entry === undefined) continue;
  const { buildPage } = await import("./build-page.mjs");
  mkdirSync(join(target, "web"), { recursive: true });
  writeFileSync(
    join(target, "web", `${page.name}.html`),
    await buildPage(join(root, "web", page.name), entry),
  );
}
writeFileSync(join(target, ".built"), "");

const old = `${target}.old`;
if (existsSync(join(root, "dist"))) renameSync(join(root, "dist"), old);
renameSync(target, join(root, "dist"));
rmSync(old, { recursive: true, force: true });
