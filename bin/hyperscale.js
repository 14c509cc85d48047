#!/usr/bin/env node
// The command. In an installed package dist/ is there; in a checkout it is built on first use.

import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const [major, minor] = process.versions.node.split(".").map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  process.stderr.write(`hyperscale needs Node 20.19 or later; this is ${process.version}.\n`);
  process.exit(2);
}
// Asked by scripts and editors: answered without loading anything.
if (process.argv.length === 3 && ["-V", "--version", "version"].includes(process.argv[2])) {
  const manifest = readFileSync(new URL("../package.json", import.meta.url), "utf8");
  process.stdout.write(`${JSON.parse(manifest).version}\n`);
  process.exit(0);
}
if (existsSync(fileURLToPath(new URL("../tools/bootstrap.mjs", import.meta.url)))) {
  const { buildStale, installAbsent } = await import("../tools/bootstrap.mjs");
  installAbsent();
  buildStale();
}
const { main } = await import("../dist/cli/main.js");
await main(process.argv.slice(2));
