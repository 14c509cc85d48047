export interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}
export interface FailedFile {
  readonly file: string;
  readonly project: string;
  /** Names of the tests. */
  readonly tests: readonly string[];
}
export interface Failed {
  readonly files: readonly FailedFile[];
  readonly isElsewhere: boolean;
}
export interface Outcome {
  readonly file: string;
  readonly tests: readonly string[];
  readonly passed: boolean;
  readonly counts: Counts;
  readonly alone: Counts;
}
export const FAILED_FILE: string;
export function countsLine(counts: Counts): string;
export function filesToRunAgain(failed: Failed): string[];
export function againBlock(outcomes: readonly Outcome[], counts: Counts): string;
