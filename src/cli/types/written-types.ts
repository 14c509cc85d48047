/** Result of a description. */
export interface WrittenTypes {
  /** Without the head of the file. */
  readonly text: string;
  /** The interface that a target is typed by, and how. */
  readonly usage: string;
  /** Parts without a TypeScript equivalent, each with its place; `unknown` in the text. */
  readonly unsupported: readonly string[];
}
