/** The workflow itself is wrong: a mistake of the person who wrote it, told before anything runs. */
export class DefinitionError extends Error {
  override readonly name = "DefinitionError";
}
