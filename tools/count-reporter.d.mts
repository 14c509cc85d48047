export interface SkippedTest {
  readonly reason: string;
  readonly file: string;
  readonly path: readonly string[];
}
export function skippedBlock(skipped: readonly SkippedTest[]): string;
