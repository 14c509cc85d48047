// `npm start`: a first look. Installs and builds what is missing, starts the bundled demo target on
// loopback, runs examples/quickstart.ts against it with the live terminal, and says where the report is.

import { spawn } from "node:child_process";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { buildStale, installMissing, root } from "./bootstrap.mjs";

installMissing();
buildStale();

const { startDemoTarget } = await import(
  pathToFileURL(join(root, "dist", "demo", "server.js")).href
);
const target = await startDemoTarget({ host: "127.0.0.1", port: 0 });
const run = spawn(
  process.execPath,
  [join(root, "bin", "hyperscale.js"), "run", join("examples", "quickstart.ts")],
  {
    cwd: root,
    stdio: "inherit",
    env: { ...process.env, HYPERSCALE_TARGET: target.url },
  },
);
// The newest results folder is that of the run above.
function next() {
  const results = join(root, "hyperscale-results");
  const folders = existsSync(results) ? readdirSync(results, { withFileTypes: true }) : [];
  const newest = folders
    .filter((one) => one.isDirectory() && existsSync(join(results, one.name, "report.html")))
    .map(({ name }) => ({ name, at: statSync(join(results, name, "report.html")).mtimeMs }))
    .sort((a, b) => b.at - a.at)[0];
  const report =
    newest === undefined
      ? ""
      : `  open ${pathToFileURL(join(results, newest.name, "report.html")).href}\n`;
  return (
    "\nNext:\n" +
    report +
    "  npx hyperscale new ../load/flow.ts    a project of your own\n" +
    "  npx hyperscale run http://127.0.0.1:8089   load a URL (npx hyperscale demo-target serves this one)\n" +
    "  docs/README.md                        guide, reference, examples\n"
  );
}

// Ctrl-C goes to the run, which ends with its results; we follow it.
process.on("SIGINT", () => {});
run.on("exit", async (code, signal) => {
  await target.close();
  if (code !== null) process.stdout.write(next());
  process.exit(code ?? (signal === "SIGINT" ? 130 : 1));
});
