export interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}
export interface FileResult {
  readonly file: string;
  readonly testMs: number;
  /** All tests, from the outermost group to the test, joined by " > ". */
  readonly names: readonly string[];
  readonly passed: number;
  /** Names of failed tests. */
  readonly failed: readonly string[];
  /** A reason per skipped test; null: none given. */
  readonly skipped: readonly (string | null)[];
}
export interface Results {
  readonly files: readonly FileResult[];
  /** Errors outside of any file. */
  readonly outside: number;
}
export interface QuarantineEntry {
  readonly file: string;
  readonly test: string;
  readonly reason: string;
  /** Date on which the entry was added: 2026-11-18. */
  readonly since: string;
}
export interface Circumstances {
  readonly quarantine: readonly QuarantineEntry[];
  readonly nowMs: number;
  readonly isWhole: boolean;
  readonly isQuiet: boolean;
}
export interface Verdict {
  readonly counts: Counts;
  readonly quarantined: readonly { readonly file: string; readonly test: string }[];
  readonly problems: readonly string[];
  readonly isGreen: boolean;
}
export function judge(results: Results, circumstances: Circumstances): Verdict;
/** Paths of unmarked files above the limit. */
export function filesToTimeAlone(files: readonly FileResult[]): string[];
export function withTimesAlone(results: Results, alone: Results): Results;
export function skippedLines(files: readonly FileResult[]): string[];
export function countsLine(counts: Counts): string;
