/** Checks of the workflows of a file before they run, with the messages of the command line. */

import type { Problem } from "../core/load/job/core-messages.ts";
import { validateManifests, type WorkflowManifest, withParts } from "../core/load/job/manifest.ts";
import { unknownName, type WrittenTexts } from "../core/load/results/threshold-names.ts";
import { parseThreshold } from "../core/load/results/thresholds.ts";
import { ERROR_KINDS } from "../protocols/protocol.ts";
import { RunError } from "./errors.ts";

/** Time for a core to import the workflow. */
export const LOAD_TIMEOUT_MS = 30_000;
const LOAD_HINT =
  "Code at the top of a workflow file runs when it is loaded: does something there wait for ever?";

export function loadedTooLate(): RunError {
  const seconds = LOAD_TIMEOUT_MS / 1_000;
  return new RunError(`the workflow did not load within ${seconds} s`, 1, LOAD_HINT);
}

interface Checked {
  readonly manifests: readonly WorkflowManifest[];
  /** Thresholds of the whole run, besides those of the workflows. */
  readonly thresholds: readonly string[];
  readonly texts: WrittenTexts;
  readonly warn: (line: string) => void;
}

/** Throws when they cannot run as declared. */
export function checkManifests({ manifests, texts, thresholds, warn }: Checked): void {
  for (const { message, severity } of validateManifests(manifests)) {
    if (severity === "error") throw new RunError(message, 2);
    warn(`warning: ${message}`);
  }
  const ofRun = thresholds.map((text) => ({ text, workflow: null }));
  const ofWorkflows = withParts(manifests).flatMap(({ name, thresholds: own }) =>
    own.map(({ expression }) => ({ text: expression, workflow: name })),
  );
  for (const { text, workflow } of [...ofRun, ...ofWorkflows]) {
    const problem = thresholdProblem(text, workflow, withParts(manifests), texts);
    if (problem !== null) throw new RunError(problem, 2);
  }
}

function thresholdProblem(
  text: string,
  workflow: string | null,
  manifests: readonly WorkflowManifest[],
  texts: WrittenTexts,
): string | null {
  const parsed = parseThreshold(text);
  const problem = parsed.ok
    ? unknownName(parsed.threshold, workflow, { manifests, errorKinds: ERROR_KINDS, texts })
    : parsed.problem;
  if (problem === null) return null;
  const where = workflow === null ? "--threshold" : `workflow "${workflow}": threshold`;
  return `${where} "${text}": ${problem}`;
}

export function placed({ location, message }: Problem): string {
  return location === null ? message : `${location}: ${message}`;
}

/** Names the file for a mistake without a line. */
export function placedIn(file: string, problem: Problem): string {
  return placed({ ...problem, location: problem.location ?? file });
}
