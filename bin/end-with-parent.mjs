// Loaded into a load test that a queue node runs, before anything else: when the node is killed, the load
// ends. The node says who it is; processes that the test starts itself have another parent and do nothing.

import { isMainThread } from "node:worker_threads";

const LOOK_MS = 500;
const KILL_AFTER_MS = 5_000;

const parent = Number(process.env.HYPERSCALE_LOADTEST_PARENT);
if (isMainThread && process.ppid === parent) {
  const look = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(look);
    process.kill(process.pid, "SIGINT");
    setTimeout(() => process.kill(process.pid, "SIGKILL"), KILL_AFTER_MS).unref();
  }, LOOK_MS);
  look.unref();
}
