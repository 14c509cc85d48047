/** What was made of a description. */
export interface WrittenTypes {
  /** Without the head of the file. */
  readonly text: string;
  /** The interface that a target is typed by, and how. */
  readonly usage: string;
  /** What TypeScript or we cannot say, each with the place it stands at; it is `unknown` in the text. */
  readonly unsupported: readonly string[];
}
