// `npm test`: installs what is missing, builds, checks types, purity, lint and house rules, then runs every test that
// is not named *.slow.test.ts. `npm run test:full` (--full) runs the slow ones as well; with --rest it runs only
// those, for CI, which has run `npm test` just before. Any other argument selects test files.
// Programs that tests need are installed first where that is allowed; --no-install leaves that out.

import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { BUILT, buildStale, installMissing, root } from "./bootstrap.mjs";
import { runTests } from "./run-tests.mjs";
import { installPrograms } from "./test-programs.mjs";

const FLAGS = ["--full", "--rest", "--no-install"];
const filters = process.argv.slice(2).filter((argument) => !FLAGS.includes(argument));
const [isFull, isRest, isAsIs] = FLAGS.map((flag) => process.argv.includes(flag));

installMissing();
buildStale();
process.env[BUILT] = "1";
if (!isAsIs) installPrograms();
if (!isRest) runChecks();

const FAST = ["--project", "unit", "--project", "system"];
const SLOW = ["--project", "slow"];
const selected = isRest ? SLOW : isFull ? [...FAST, ...SLOW] : FAST;
const isWhole = isFull && !isRest && filters.length === 0;
process.exit(runTests(filters.length > 0 ? filters : selected, { isWhole }));

function runChecks() {
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
}
