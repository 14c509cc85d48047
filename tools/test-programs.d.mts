export interface TestProgram {
  readonly names: readonly string[];
  readonly package: string;
  readonly neededBy: string;
}
export const PROGRAMS: readonly TestProgram[];
export function isPresent(name: string, folders?: readonly string[]): boolean;
export function absentPrograms(
  programs?: readonly TestProgram[],
  present?: (name: string) => boolean,
): TestProgram[];
export function installPrograms(say?: (text: string) => void): void;
