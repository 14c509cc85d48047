// A vitest reporter that records each file's outcome and test time in the file named by HYPERSCALE_TEST_RESULTS.

import { writeFileSync } from "node:fs";

export const RESULTS_FILE = "HYPERSCALE_TEST_RESULTS";

export default class TestRecorder {
  onTestRunEnd(modules, unhandledErrors) {
    const into = process.env[RESULTS_FILE];
    if (into === undefined) return;
    const files = modules.map((module) => {
      const tests = [...module.children.allTests()];
      const inState = (state) => tests.filter((test) => test.result().state === state);
      return {
        file: module.relativeModuleId,
        testMs: module.diagnostic().duration,
        names: tests.map(nameOf),
        passed: inState("passed").length,
        // A file that fails outside of its tests, in a hook or while it is loaded, fails once more.
        failed: [...inState("failed").map(nameOf), ...module.errors().map(() => "(file)")],
        skipped: [...inState("skipped"), ...inState("pending")].map(
          (test) => test.meta().skippedBecause ?? test.result().note ?? null,
        ),
      };
    });
    writeFileSync(into, JSON.stringify({ files, outside: unhandledErrors.length }));
  }
}

/** Names from the outermost group to the test. */
function nameOf(test) {
  const path = [test.name];
  for (let at = test.parent; at.type === "suite"; at = at.parent) path.unshift(at.name);
  return path.join(" > ");
}
