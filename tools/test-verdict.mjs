// Judges a test run: what failed, what is quarantined, which files take longer or shorter than their name says.
// Pure: tools/run-tests.mjs feeds it what the reporter recorded.

/** Longest test time of a file that `npm test` runs; a longer one is named *.slow.test.ts. */
const FAST_MS_MAX = 10_000;
/** A slow machine stretches every file: the limit is this share of all test time, where that is more. */
const FAST_SHARE_MAX = 0.02;
/** Shortest test time of a file named *.slow.test.ts. */
const SLOW_MS_MIN = 3_000;
/** How long a flaky test may stay in test/quarantine.json. */
const QUARANTINE_DAYS_MAX = 14;

const DAY_MS = 86_400_000;
const NO_REASON = "no reason given (test/needs.ts)";

/**
 * `results`: { files, outside }, as tools/test-recorder.mjs writes it. `quarantine`: entries of
 * test/quarantine.json. `isWhole`: every file of the suite ran. `isQuiet`: no other program took the CPU.
 */
export function judge(results, { quarantine, nowMs, isWhole, isQuiet }) {
  const isListed = (file, test) =>
    quarantine.some((entry) => entry.file === file && entry.test === test);
  const failed = results.files.flatMap(({ file, failed: tests }) =>
    tests.map((test) => ({ file, test })),
  );
  const quarantined = failed.filter(({ file, test }) => isListed(file, test));
  const problems = [
    ...quarantine.flatMap((entry) => entryProblems(entry, results, nowMs, isWhole)),
    ...(isQuiet ? timeProblems(results.files) : []),
  ];
  const sum = (of) => results.files.reduce((total, file) => total + of(file), 0);
  const counts = {
    passed: sum(({ passed }) => passed),
    failed: failed.length - quarantined.length + results.outside + problems.length,
    skipped: sum(({ skipped }) => skipped.length),
  };
  return { counts, quarantined, problems, isGreen: counts.failed === 0 };
}

/** Unmarked files above the limit while others ran beside them: they are judged by a second time, measured alone. */
export function filesToTimeAlone(files) {
  const limitMs = fastLimitMs(files);
  return files
    .filter(({ file, testMs }) => !isMarked(file) && testMs > limitMs)
    .map(({ file }) => file);
}

/** A file's time is the shorter of both; a failure in either run stays. */
export function withTimesAlone(results, alone) {
  const files = results.files.map((first) => {
    const second = alone.files.find(({ file }) => file === first.file);
    if (second === undefined) return first;
    const failed = [...new Set([...first.failed, ...second.failed])];
    return { ...first, testMs: Math.min(first.testMs, second.testMs), failed };
  });
  return { files, outside: results.outside + alone.outside };
}

function fastLimitMs(files) {
  const totalMs = files.reduce((sum, { testMs }) => sum + testMs, 0);
  return Math.max(FAST_MS_MAX, totalMs * FAST_SHARE_MAX);
}

const isMarked = (file) => file.endsWith(".slow.test.ts");

function entryProblems({ file, test, reason, since }, results, nowMs, isWhole) {
  const name = `test/quarantine.json: ${file} > ${test}`;
  const sinceMs = Date.parse(since);
  if (!reason || Number.isNaN(sinceMs)) return [`${name}: needs a reason and a date`];
  const found = results.files.find((one) => one.file === file);
  if (isWhole && !found?.names.includes(test)) return [`${name}: no such test`];
  if (nowMs - sinceMs > QUARANTINE_DAYS_MAX * DAY_MS)
    return [`${name}: listed for more than ${QUARANTINE_DAYS_MAX} days; fix the test`];
  return [];
}

function timeProblems(files) {
  const limitMs = fastLimitMs(files);
  const seconds = (ms) => `${(ms / 1000).toFixed(1)} s`;
  return files.flatMap(({ file, testMs, skipped, names }) => {
    const isSlow = isMarked(file);
    if (!isSlow && testMs > limitMs)
      return [`${file} takes ${seconds(testMs)}: shorten it or name it *.slow.test.ts`];
    // What was skipped takes no time.
    if (isSlow && testMs < SLOW_MS_MIN && skipped.length < names.length / 2)
      return [`${file} takes only ${seconds(testMs)}: drop .slow from its name`];
    return [];
  });
}

/** Counts by what is missing, and the command that fetches it. */
export function skippedLines(files) {
  const reasons = new Map();
  for (const { skipped } of files)
    for (const reason of skipped)
      reasons.set(reason ?? NO_REASON, (reasons.get(reason ?? NO_REASON) ?? 0) + 1);
  if (reasons.size === 0) return [];
  const sorted = [...reasons].sort(([, a], [, b]) => b - a);
  const short = (reason) => reason.replace(/ \(package [^)]*\)/, "");
  const isFetched = ([reason]) => reason.includes("npm run test:protocols");
  return [
    `skipped: ${sorted.map(([reason, count]) => `${count} ${short(reason)}`).join(", ")}`,
    ...(sorted.some(isFetched)
      ? ["npm run test:protocols fetches the servers and runs those tests"]
      : []),
  ];
}

export function countsLine({ passed, failed, skipped }) {
  return `${passed} passed, ${failed} failed, ${skipped} skipped`;
}
