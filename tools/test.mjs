// `npm test`: installs what is missing, builds, and runs every check in order of speed: types, the
// purity of the core, lint and format, house rules (tidy), then all tests. Ends with what was skipped
// and the counts.
// Programs that tests need are installed first where that may be; --no-install leaves that out.

import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { buildStale, installMissing, root } from "./bootstrap.mjs";
import { installPrograms } from "./test-programs.mjs";

const NO_INSTALL = "--no-install";
const filters = process.argv.slice(2).filter((argument) => argument !== NO_INSTALL);

installMissing();
buildStale();
if (!process.argv.includes(NO_INSTALL)) installPrograms();

const bin = (name) => join(root, "node_modules", ".bin", name);
const checks = [
  ["types", bin("tsc"), ["-p", "tsconfig.json"]],
  ["purity of core and wire", bin("tsc"), ["-p", "tsconfig.pure.json"]],
  ["types of the web pages", bin("tsc"), ["-p", "web/tsconfig.json"]],
  ["lint and format", bin("biome"), ["ci", "--reporter=summary", "."]],
  ["house rules", bin("tsx"), ["tools/tidy.ts"]],
];
for (const [what, command, args] of checks) {
  const started = performance.now();
  const result = spawnSync(command, args, { cwd: root, encoding: "utf8" });
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  if (result.status !== 0) {
    process.stdout.write(`${result.stdout}${result.stderr}✗ ${what} (${seconds} s)\n`);
    process.exit(1);
  }
  process.stdout.write(`✓ ${what} (${seconds} s)\n`);
}

const tests = spawnSync(
  bin("vitest"),
  ["run", "--reporter=default", "--reporter=./tools/count-reporter.mjs", ...filters],
  {
    cwd: root,
    stdio: "inherit",
  },
);
process.exit(tests.status ?? 1);
