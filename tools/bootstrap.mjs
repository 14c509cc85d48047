// Makes a fresh clone usable: installs what the lockfile names when it is missing or older than the
// lockfile, and builds dist/ when the sources are newer. Plain JavaScript, because it runs before
// anything is installed. Used by `npm start`, `npm test` and `bin/hyperscale.js` in a checkout.

import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Runs a command with its output on stderr, so that stdout stays the caller's; ends the process if it fails. */
export function run(command, args, { quiet = false } = {}) {
  const result = spawnSync(command, args, {
    cwd: root,
    stdio: quiet ? ["ignore", "pipe", "pipe"] : ["ignore", 2, 2],
    encoding: "utf8",
  });
  if (result.error !== undefined) fail(`cannot start ${command}: ${result.error.message}`);
  if (result.status !== 0) {
    if (quiet) process.stderr.write(`${result.stdout}${result.stderr}`);
    fail(`${command} ${args.join(" ")} ended with ${result.status ?? result.signal}`);
  }
}

function fail(message) {
  process.stderr.write(`hyperscale: ${message}\n`);
  process.exit(1);
}

/** Installs dependencies when there are none: for the command itself, of which several may run at once. */
export function installAbsent() {
  if (!existsSync(join(root, "node_modules"))) installMissing();
}

/** Installs dependencies when node_modules is missing or was made from another lockfile. */
export function installMissing() {
  const marker = join(root, "node_modules", ".package-lock.json");
  const lock = join(root, "package-lock.json");
  if (existsSync(marker) && statSync(marker).mtimeMs >= statSync(lock).mtimeMs) return;
  process.stderr.write("hyperscale: installing dependencies …\n");
  run("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], { quiet: true });
}

/** Set by who has built: what it starts need not look at every source again, which takes a tenth of a short command. */
export const BUILT = "HYPERSCALE_BUILT";

/** Builds dist/ when it is missing or any source is newer. */
export function buildStale() {
  if (process.env[BUILT] === "1") return;
  const stamp = join(root, "dist", ".built");
  if (
    existsSync(stamp) &&
    statSync(stamp).mtimeMs >= newest(["src", "web", "tsconfig.json", "tsconfig.build.json"])
  ) {
    return;
  }
  // Commands that start at the same time build once: one holds the lock, the others wait and look again.
  if (!lockBuild()) return buildStale();
  try {
    process.stderr.write("hyperscale: building …\n");
    run(process.execPath, [join("tools", "build.mjs")]);
  } finally {
    unlockBuild();
  }
}

function unlockBuild() {
  rmSync(buildLock, { recursive: true, force: true });
}

const buildLock = join(root, "node_modules", ".hyperscale-build");
/** Longer than any build: who holds the lock for so long is dead. */
const BUILD_MS_MAX = 300_000;
let saidWaiting = false;

/** True when the lock is ours; false after a while of waiting for somebody else's build. */
function lockBuild() {
  try {
    writeFileSync(buildLock, String(process.pid), { flag: "wx" });
    // A build that fails ends the process: the lock goes with it.
    process.once("exit", unlockBuild);
    return true;
  } catch (error) {
    if (error.code !== "EEXIST") throw error;
    if (isAbandoned()) unlockBuild();
    else if (!saidWaiting)
      process.stderr.write("hyperscale: waiting for another command's build …\n");
    saidWaiting = true;
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
    return false;
  }
}

/** Whoever held the lock was killed before it could give it back. */
function isAbandoned() {
  try {
    if (Date.now() - statSync(buildLock).mtimeMs > BUILD_MS_MAX) return true;
    const holder = Number(readFileSync(buildLock, "utf8"));
    if (holder > 0) process.kill(holder, 0);
    return false;
  } catch (error) {
    return error.code === "ESRCH";
  }
}

function newest(paths) {
  let latest = 0;
  for (const path of paths) {
    const full = join(root, path);
    if (!existsSync(full)) continue;
    const stat = statSync(full);
    latest = Math.max(
      latest,
      stat.isDirectory() ? newest(readdirSync(full).map((name) => join(path, name))) : stat.mtimeMs,
    );
  }
  return latest;
}
