// A vitest reporter that closes with one block of what was skipped and why, and one line of counts. Whoever names
// a file for it finds there what failed.

import { writeFileSync } from "node:fs";
import { countsLine, FAILED_FILE } from "./test-again.mjs";

const NO_REASON = "no reason is given (test/needs.ts)";

export default class CountReporter {
  onTestRunEnd(modules, unhandledErrors) {
    const counts = { passed: 0, failed: unhandledErrors.length, skipped: 0 };
    const count = (kind, of) => {
      counts[kind] += 1;
      of[kind] += 1;
    };
    const skipped = [];
    const failed = [];
    for (const module of modules) {
      const own = { passed: 0, failed: 0, skipped: 0 };
      if (module.errors().length > 0) count("failed", own);
      const tests = [];
      for (const test of module.children.allTests()) {
        const { state, note } = test.result();
        count(state === "pending" ? "skipped" : state, own);
        if (state === "failed") tests.push(pathOf(test).join(" > "));
        if (state !== "skipped") continue;
        const reason = test.meta().skippedBecause ?? note ?? NO_REASON;
        skipped.push({ reason, file: module.relativeModuleId, path: pathOf(test) });
      }
      if (!module.ok())
        failed.push({
          ...{ file: module.relativeModuleId, project: module.project.name },
          ...{ tests, counts: own },
        });
    }
    const into = process.env[FAILED_FILE];
    const isElsewhere = unhandledErrors.length > 0;
    if (into !== undefined)
      writeFileSync(into, JSON.stringify({ files: failed, isElsewhere, counts }));
    process.stdout.write(skippedBlock(skipped));
    process.stdout.write(`\n${countsLine(counts)}\n`);
  }
}

/** Names from the outermost group to the test. */
function pathOf(test) {
  const path = [test.name];
  for (let at = test.parent; at.type === "suite"; at = at.parent) path.unshift(at.name);
  return path;
}

/** One line per group or test, under its reason. */
export function skippedBlock(skipped) {
  if (skipped.length === 0) return "";
  const reasons = new Map();
  for (const { reason, file, path } of skipped) {
    const groups = reasons.get(reason) ?? new Map();
    const group = `${file} > ${path[0]}`;
    groups.set(group, [...(groups.get(group) ?? []), [file, ...path].join(" > ")]);
    reasons.set(reason, groups);
  }
  const lines = ["", "skipped:"];
  for (const [reason, groups] of reasons) {
    lines.push(`  ${reason}`);
    for (const [group, tests] of groups) {
      lines.push(tests.length === 1 ? `    ${tests[0]}` : `    ${group} (${tests.length} tests)`);
    }
  }
  return `${lines.join("\n")}\n`;
}
