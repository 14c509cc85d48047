// Completes package-lock.json: packages with one binary per platform (biome, rollup) list all of them as
// optional, but npm records only those that the registry at hand could give, and `npm ci` then refuses
// the lockfile. This adds the missing platforms by name and version, so that the lockfile is the same
// everywhere. Run it after changing dependencies:  node tools/complete-lockfile.mjs

import { readFileSync, writeFileSync } from "node:fs";

const file = new URL("../package-lock.json", import.meta.url);
const lock = JSON.parse(readFileSync(file, "utf8"));
const systems = [
  "android",
  "darwin",
  "freebsd",
  "linux",
  "netbsd",
  "openbsd",
  "openharmony",
  "win32",
];
const processors = ["arm", "arm64", "ia32", "loong64", "ppc64", "riscv64", "s390x", "x64"];

for (const { dev, optionalDependencies = {} } of Object.values(lock.packages)) {
  for (const [name, version] of Object.entries(optionalDependencies)) {
    const path = `node_modules/${name}`;
    const words = name.split(/[/-]/);
    const os = systems.find((system) => words.includes(system));
    const cpu = processors.find((processor) => words.includes(processor));
    if (lock.packages[path] !== undefined || os === undefined || cpu === undefined) continue;
    const musl = words.some((word) => word.startsWith("musl"));
    lock.packages[path] = {
      version,
      cpu: [cpu],
      ...(dev ? { dev } : {}),
      ...(musl ? { libc: ["musl"] } : {}),
      optional: true,
      os: [os],
    };
  }
}
lock.packages = Object.fromEntries(
  Object.entries(lock.packages).sort(([a], [b]) => (a < b ? -1 : 1)),
);
writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`);
