#!/usr/bin/env node
// The command. In an installed package dist/ is there; in a checkout it is built on first use.

import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const [major, minor] = process.versions.node.split(".").map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  process.stderr.write(`hyperscale needs Node 20.19 or later; this is ${process.version}.\n`);
  process.exit(2);
}
if (existsSync(fileURLToPath(new URL("../tools/bootstrap.mjs", import.meta.url)))) {
  const { buildStale, installAbsent } = await import("../tools/bootstrap.mjs");
  installAbsent();
  buildStale();
}
const { main } = await import("../dist/cli/main.js");
await main(process.argv.slice(2));
