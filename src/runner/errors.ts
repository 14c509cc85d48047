/** Ends a run before or instead of a verdict, with its exit code. */
export class RunError extends Error {
  override readonly name = "RunError";
  /** 2: the workflow or the arguments are wrong, nothing ran. 130: interrupted. 1: anything else. */
  readonly exitCode: 1 | 2 | 130;
  /** Advice for the user. */
  readonly hint: string | null;

  constructor(message: string, exitCode: 1 | 2 | 130, hint: string | null = null) {
    super(message);
    this.exitCode = exitCode;
    this.hint = hint;
  }
}
