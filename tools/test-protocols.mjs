// `npm run test:protocols`: every protocol against its real server. Servers that the machine lacks are
// fetched as Debian packages into a cache folder (src/protocols/testing/real-server.ts); what cannot be
// had is skipped by name.

import { buildStale, installMissing } from "./bootstrap.mjs";
import { runTests } from "./run-tests.mjs";

installMissing();
buildStale();
const names = process.argv.slice(2);
const filters =
  names.length > 0 ? names.map((name) => `src/protocols/${name}/`) : ["src/protocols"];
process.exit(runTests(filters, { env: { HYPERSCALE_FETCH_SERVERS: "1" } }));
