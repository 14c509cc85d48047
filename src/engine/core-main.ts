/**
 * Process of an executor core. Commands and events travel over Node's IPC pipe. When the manager dies the pipe closes
 * and the core exits, so no orphan goes on making load.
 */

import { format } from "node:util";
import { Defect } from "../core/base/assert.ts";
import type { CoreCommand, CoreEvent } from "../core/load/job/core-messages.ts";
import { Complaints } from "./complaints.ts";
import { Core } from "./core.ts";
import { IterationEnd } from "./iteration-end.ts";

const send = (event: CoreEvent): void => {
  if (process.connected) process.send?.(event);
};
const core = new Core(send);
/** EX_SOFTWARE of sysexits.h. */
const EXIT_DEFECT = 70;

process.on("message", (command: CoreCommand) => {
  if (command.kind === "exit") process.exit(0);
  core.handle(command);
});
process.on("disconnect", () => {
  try {
    // Programs that its code started end with a core that leads a group.
    process.kill(-process.pid, "SIGKILL");
  } catch {
    // Cores of `run` are in the group of their run.
  }
  process.exit(1);
});
// Ctrl-C reaches the whole process group; the manager decides when a core exits.
process.on("SIGINT", () => {});
process.on("SIGTERM", () => {});
process.on("SIGHUP", () => {});

// Unhandled errors of user code must not end the core: report them and go on with the load.
const complaints = new Complaints((line) => send({ kind: "unhandled", line }));
const leftUnhandled = (error: unknown): void => {
  // A call that nobody awaits was refused or cut off with its iteration: not a mistake of its author.
  if (error instanceof IterationEnd) return;
  complaints.add("unhandled error in a workflow", error);
  // A broken invariant of ours is different: going on would produce numbers nobody can trust.
  if (error instanceof Defect) process.exit(EXIT_DEFECT);
};
process.on("unhandledRejection", leftUnhandled);
process.on("uncaughtException", leftUnhandled);

for (const level of ["log", "info", "warn", "error", "debug"] as const) {
  console[level] = (...values: unknown[]) => {
    send({ kind: "log", line: format(...values), isComplaint: false });
  };
}
