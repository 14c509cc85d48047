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
  /** Share of unanswered calls and iterations that does not fail the run. */
  readonly unansweredMax?: number;
  readonly timeoutMs?: number;
  readonly insecure?: boolean;
  /** Share of iterations whose requests carry a W3C traceparent header. */
  readonly tracedShare?: number;
  /** Run these alone, by name. */
  readonly only?: readonly string[];
  /** Random seed for `chance()`, `pick()` and `pause()`: the same seed gives each user the same choices. */
  readonly seed?: string;
  /**
   * Environment variables for the code of the file. A core sets them before it loads the file and
   * after it has started, so that none of them can change how a process starts.
   */
  readonly env?: Readonly<Record<string, string>>;
}
