/** A mistake in the workflow itself, reported to its author before anything runs. */
export class DefinitionError extends Error {
  override readonly name = "DefinitionError";
}
