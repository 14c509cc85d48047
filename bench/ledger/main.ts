/**
 * `npm run bench:ledger`: three real processes on loopback, every commit synced to disk by a quorum, a
 * thousand jobs; etcd beside it with the same payload and concurrency; and how long a job waits when its
 * primary dies.
 */

import { parseArgs } from "node:util";
import { commits } from "./commits.ts";

const { values } = parseArgs({
  options: {
    jobs: { type: "string", default: "1000" },
    seconds: { type: "string", default: "10" },
    window: { type: "string", default: "4" },
    profile: { type: "boolean", default: false },
  },
});

const result = await commits({
  jobs: Number(values.jobs),
  seconds: Number(values.seconds),
  window: Number(values.window),
  profile: values.profile,
});
process.stdout.write(`${JSON.stringify(result, null, 2)}\n`);
