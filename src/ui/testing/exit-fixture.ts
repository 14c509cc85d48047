/** A small program for exit-paths.test.ts: shows the live view and then ends in the requested way. */

import { createView } from "../view.ts";
import { syntheticRun, syntheticSummary } from "./synthetic.ts";

const way = process.argv[2] ?? "finish";
const view = createView({
  mode: "full",
  stdout: process.stdout,
  stdin: process.stdin,
  env: process.env,
});
const finish = (): void =>
  view.finish({ summary: syntheticSummary(30), files: ["out/report.html"] });

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => {
    finish();
    process.stdout.write(`ended by ${signal}\n`);
    process.exit(3);
  });
}
view.start((command) => {
  if (command.kind !== "stop") return;
  finish();
  process.exit(4);
});
view.update(syntheticRun(16));

const ways: Readonly<Record<string, () => void>> = {
  finish,
  exit: () => process.exit(5),
  throw: () => {
    throw new Error("a defect in the run");
  },
  reject: () => void Promise.reject(new Error("a rejection in the run")),
  signal: () => process.kill(process.pid, "SIGTERM"),
  // The test types the key.
  key: () => {},
};
setTimeout(ways[way] ?? finish, 200);
// Neither a pending signal nor a key keeps a process alive; a run does.
if (way === "signal" || way === "key") setTimeout(() => {}, 200_000);
