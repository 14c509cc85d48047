// Programs that tests start and that Node does not bring. `npm test` installs those that are absent from
// Debian's packages where it may (as root, or with sudo that asks nothing), and says so first. Where it
// may not, or where that fails, the tests that need them are skipped by name.

import { spawnSync } from "node:child_process";
import { accessSync, closeSync, constants, openSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";

/** Any one of the names will do. */
const PROGRAMS = [
  {
    names: ["chromium", "chromium-browser", "google-chrome"],
    package: "chromium",
    neededBy: "the report and the queue page in a browser",
  },
  { names: ["nginx"], package: "nginx", neededBy: "HTTP/2 against a server that is not ours" },
  { names: ["strace"], package: "strace", neededBy: "errors of fdatasync in a real process" },
  { names: ["openssl"], package: "openssl", neededBy: "certificates of members" },
  { names: ["ip"], package: "iproute2", neededBy: "networks that are cut in two" },
  { names: ["ps"], package: "procps", neededBy: "executor cores that are killed" },
  { names: ["script"], package: "bsdutils", neededBy: "runs on a terminal" },
  { names: ["prlimit"], package: "util-linux", neededBy: "limits that are raised" },
];

/** Installing a browser over a slow line takes minutes; who waits longer than this has no line. */
const INSTALL_MS_MAX = 600_000;

/** Administrators' folders are not on everybody's path, and hold ip and nginx. */
const FOLDERS = [...(process.env.PATH ?? "").split(delimiter), "/usr/sbin", "/sbin"];

export function isPresent(name, folders = FOLDERS) {
  return folders.some((folder) => {
    try {
      accessSync(join(folder, name), constants.X_OK);
      return folder !== "";
    } catch {
      return false;
    }
  });
}

export function absentPrograms(programs = PROGRAMS, present = isPresent) {
  if (process.env.CHROMIUM_PATH) {
    programs = programs.filter((program) => program.package !== "chromium");
  }
  return programs.filter(({ names }) => !names.some((name) => present(name)));
}

/**
 * A freshly installed nginx must not begin to serve: while packages are set up, policy-rc.d says that no
 * service starts. One that stands there already is the machine's own and stays.
 */
const INSTALL = `
set -e
export DEBIAN_FRONTEND=noninteractive
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\\nexit 101\\n' > "$policy"
  chmod 755 "$policy"
  trap 'rm -f "$policy"' EXIT
fi
install="apt-get install -y --no-install-recommends"
$install "$@" || { apt-get update; $install "$@"; }
`;

/** Ends with what is there; whatever is still absent is told by the tests that are skipped. */
export function installPrograms(say = (text) => process.stdout.write(`${text}\n`)) {
  const absent = absentPrograms();
  if (absent.length === 0) return;
  const list = absent.map(({ package: name, neededBy }) => `${name} (${neededBy})`).join(", ");
  const root = process.getuid?.() === 0;
  const may =
    isPresent("apt-get") &&
    (root || spawnSync("sudo", ["-n", "true"], { stdio: "ignore" }).status === 0);
  if (!may) {
    say(`absent, and not to be installed from here: ${list}`);
    return;
  }
  const log = join(tmpdir(), `hyperscale-test-programs-${process.pid}.log`);
  say(`installing ${list}; --no-install leaves that out; output in ${log}`);
  const file = openSync(log, "w");
  const packages = absent.map(({ package: name }) => name);
  const shell = ["sh", "-c", INSTALL, "install", ...packages];
  const [command, ...args] = root ? shell : ["sudo", "-n", ...shell];
  const result = spawnSync(command, args, {
    stdio: ["ignore", file, file],
    timeout: INSTALL_MS_MAX,
  });
  closeSync(file);
  if (result.status === 0) say("✓ programs for tests");
  else
    say(`not installed (${result.status ?? result.signal}): the tests that need them are skipped`);
}
