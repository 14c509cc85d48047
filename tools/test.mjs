// `npm test`: installs what is missing, builds, and runs every check in order of speed: types, the
// purity of the core, lint and format, house rules (tidy), then all tests. Ends with what was skipped, the
// counts, and what failed beside others and was run again alone.
// Programs that tests need are installed first where that may be; --no-install leaves that out.

import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BUILT, buildStale, installMissing, root } from "./bootstrap.mjs";
import { againBlock, FAILED_FILE, filesToRunAgain } from "./test-again.mjs";
import { installPrograms } from "./test-programs.mjs";

const NO_INSTALL = "--no-install";
const filters = process.argv.slice(2).filter((argument) => argument !== NO_INSTALL);

installMissing();
buildStale();
process.env[BUILT] = "1";
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

const folder = mkdtempSync(join(tmpdir(), "hyperscale-test-"));
const failedFile = join(folder, "failed.json");
process.once("exit", () => rmSync(folder, { recursive: true, force: true }));

function runTests(...these) {
  const reporters = ["--reporter=default", "--reporter=./tools/count-reporter.mjs"];
  const { status } = spawnSync(bin("vitest"), ["run", ...reporters, ...these], {
    cwd: root,
    stdio: "inherit",
    env: { ...process.env, [FAILED_FILE]: failedFile },
  });
  return status ?? 1;
}

const status = runTests(...filters);
// A run that was cut off has written nothing, and its end stands.
if (status === 0 || !existsSync(failedFile)) process.exit(status);
const written = () => JSON.parse(readFileSync(failedFile, "utf8"));
const failed = written();
const outcomes = filesToRunAgain(failed).map((file) => {
  const passed = runTests("--project", "system", file) === 0;
  return { ...failed.files.find((one) => one.file === file), passed, alone: written().counts };
});
process.stdout.write(againBlock(outcomes, failed.counts));
process.exit(outcomes.length > 0 && outcomes.every(({ passed }) => passed) ? 0 : status);
