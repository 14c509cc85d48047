// `npm run test:protocols`: every protocol against its real server. Servers that the machine lacks are
// fetched as Debian packages into a cache folder (src/protocols/testing/real-server.ts); what cannot be
// had is skipped by name.

import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { buildStale, installMissing, root } from "./bootstrap.mjs";

installMissing();
buildStale();
const filters = process.argv.slice(2);
const tests = spawnSync(
  join(root, "node_modules", ".bin", "vitest"),
  [
    "run",
    "--reporter=default",
    "--reporter=./tools/count-reporter.mjs",
    ...(filters.length > 0 ? filters.map((name) => `src/protocols/${name}/`) : ["src/protocols"]),
  ],
  { cwd: root, stdio: "inherit", env: { ...process.env, HYPERSCALE_FETCH_SERVERS: "1" } },
);
process.exit(tests.status ?? 1);
