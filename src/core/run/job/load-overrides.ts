/** Flags of the command line that replace parts of a file's load model, as plain data. */

export interface LoadOverrides {
  readonly vus?: number;
  readonly durationMs?: number;
  readonly rate?: number;
  readonly maxVus?: number;
  readonly iterations?: number;
  readonly maxRate?: number;
  readonly warmupMs?: number;
  readonly gracefulStopMs?: number;
  readonly timeoutMs?: number;
  readonly insecure?: boolean;
  /** Run these alone, by name. */
  readonly only?: readonly string[];
  /** What chance draws from; the same seed gives each user the same choices. */
  readonly seed?: string;
}
