// A thread beside an executor of the queue: when the node is killed, the process ends, also one whose own loop is
// busy for ever and does not hear that its pipe has closed.

import { workerData } from "node:worker_threads";

const LOOK_MS = 1_000;

setInterval(() => {
  if (process.ppid !== workerData) process.kill(process.pid, "SIGKILL");
}, LOOK_MS);
