/**
 * Descriptions of calls are plain values: they have no user and send nothing, only a step performs
 * them. Whoever awaits one, or returns it from an async function, meant to perform it and would go
 * on without an answer; so asking for `then` throws the line to write.
 */

/** What a description has instead of a `then` that the compiler would accept after `await`. */
export type NotAwaitable = (
  sendsNothing: 'a description sends nothing: write await step("name", description)',
) => never;

export class DescriptionAwaited extends Error {
  override readonly name = "DescriptionAwaited";

  /** `inSteps` is what to write in a workflow of steps. */
  constructor(title: string, inSteps = "return http.send(…) in a step") {
    super(
      `${title} is only described, nothing was sent: write await step("name", …) in a flow, ` +
        `or ${inSteps} of a workflow`,
    );
  }
}
