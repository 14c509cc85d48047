// A file that waits for real processes can fail because of what runs beside it. The few that did are run once
// more, each alone, and the end of `npm test` names them: passed alone, they are told and not forgotten; failed
// again, they fail the whole. Everything else is final: unit tests, many files at once, errors outside of tests.

/** More than this is no accident of the machine. */
const FILES_MAX = 3;

/** Written by the reporter: what failed, and whether anything failed outside of a file. */
export const FAILED_FILE = "HYPERSCALE_FAILED_FILE";

/** The files to run again; empty: the failure stands. */
export function filesToRunAgain({ files, isElsewhere }) {
  if (isElsewhere || files.length > FILES_MAX) return [];
  if (files.some(({ project }) => project !== "system")) return [];
  return files.map(({ file }) => file);
}

export function countsLine({ passed, failed, skipped }) {
  return `${passed} passed, ${failed} failed, ${skipped} skipped`;
}

/**
 * `outcomes`: each file that failed beside others, with whether it passed alone, and what was counted then.
 * `counts`: of the whole run; the end counts each of these files as it went alone.
 */
export function againBlock(outcomes, counts) {
  if (outcomes.length === 0) return "";
  const lines = ["", "failed beside others, and then alone:"];
  for (const { file, tests, passed } of outcomes) {
    lines.push(`  ${passed ? "passed" : "failed"} ${file}`, ...tests.map((test) => `    ${test}`));
  }
  const rest = outcomes.every(({ passed }) => passed)
    ? ["what passed alone depends on the load of the machine: mend it"]
    : [];
  const total = { ...counts };
  for (const kind of Object.keys(total))
    for (const { counts: before, alone } of outcomes) total[kind] += alone[kind] - before[kind];
  return `${[...lines, ...rest, "", countsLine(total)].join("\n")}\n`;
}
