// A thread beside an executor of the queue: when the node is killed, the process ends with the programs that it
// started, also one whose own loop is busy for ever and does not hear that its pipe has closed.

import { workerData } from "node:worker_threads";

const LOOK_MS = 1_000;

setInterval(() => {
  if (process.ppid === workerData) return;
  process.kill(process.platform === "win32" ? process.pid : -process.pid, "SIGKILL");
}, LOOK_MS);
