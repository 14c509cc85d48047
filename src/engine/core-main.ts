/**
 * The process of an executor core. Commands and events travel over Node's IPC pipe. When the manager
 * is gone the pipe closes, and the core ends with it: no orphan goes on making load.
 */

import { Complaints } from "./complaints.ts";
import { Core } from "./core.ts";
import type { CoreCommand, CoreEvent } from "./messages.ts";

const send = (event: CoreEvent): void => {
  if (process.connected) process.send?.(event);
};
const core = new Core(send);

process.on("message", (command: CoreCommand) => {
  if (command.kind === "exit") process.exit(0);
  core.handle(command);
});
process.on("disconnect", () => process.exit(1));
// Ctrl-C reaches the whole process group; the manager decides when a core ends.
process.on("SIGINT", () => {});
process.on("SIGTERM", () => {});

// What user code leaves unhandled must not end the core: it is shown, and the load goes on.
const complaints = new Complaints((line) => send({ kind: "log", line }));
process.on("unhandledRejection", (error) =>
  complaints.add("unhandled rejection in a workflow", error),
);
process.on("uncaughtException", (error) =>
  complaints.add("uncaught exception in a workflow", error),
);

for (const level of ["log", "info", "warn", "error", "debug"] as const) {
  console[level] = (...values: unknown[]) => {
    void import("node:util").then(({ format }) => send({ kind: "log", line: format(...values) }));
  };
}
