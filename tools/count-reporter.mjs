// A vitest reporter that names what was skipped and closes with one plain line of counts.

export default class CountReporter {
  onTestRunEnd(modules, unhandledErrors) {
    const counts = { passed: 0, failed: unhandledErrors.length, skipped: 0 };
    const skipped = [];
    for (const module of modules) {
      if (module.errors().length > 0) counts.failed += 1;
      for (const test of module.children.allTests()) {
        const state = test.result().state;
        counts[state === "pending" ? "skipped" : state] += 1;
        if (state === "skipped") skipped.push(test.fullName);
      }
    }
    for (const name of skipped) process.stdout.write(`skipped: ${name}\n`);
    process.stdout.write(
      `\n${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped\n`,
    );
  }
}
