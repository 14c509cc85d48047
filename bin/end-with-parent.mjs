// Loaded into a load test that a queue node runs, before anything else. Reads the arguments that other users of the
// machine must not see from stdin, as a JSON array. When the node is killed, the load ends. The node says who it is;
// processes that the test starts itself have another parent and do nothing.

import { readFileSync } from "node:fs";
import { isMainThread } from "node:worker_threads";

const LOOK_MS = 500;
const KILL_AFTER_MS = 5_000;

const parent = Number(process.env.HYPERSCALE_LOADTEST_PARENT);
// A job of a cluster is cancelled over the network, perhaps of one that is just choosing leaders.
const killAfterMs = Number(process.env.HYPERSCALE_LOADTEST_KILL_MS ?? KILL_AFTER_MS);
if (isMainThread && process.ppid === parent) {
  process.argv.push(...JSON.parse(readFileSync(0, "utf8")));
  // Nobody reads any more: that must not end it before its load has.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);
  const look = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(look);
    // Not SIGINT: the node may have sent that already, and twice it means at once, without waiting for a cancel.
    process.kill(process.pid, "SIGTERM");
    // The node started it as the leader of a process group.
    const group = process.platform === "win32" ? process.pid : -process.pid;
    setTimeout(() => process.kill(group, "SIGKILL"), killAfterMs).unref();
  }, LOOK_MS);
  look.unref();
}
