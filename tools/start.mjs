// `npm start`: a first look. Installs and builds what is missing, starts the bundled demo target on
// loopback, runs examples/quickstart.ts against it with the live terminal, and says where the report is.

import { spawn } from "node:child_process";
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
// Ctrl-C goes to the run, which ends with its results; we follow it.
process.on("SIGINT", () => {});
run.on("exit", async (code, signal) => {
  await target.close();
  process.exit(code ?? (signal === "SIGINT" ? 130 : 1));
});
