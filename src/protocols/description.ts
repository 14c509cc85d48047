/**
 * Descriptions of calls are plain values: they have no user and send nothing until a step performs them. Awaiting one,
 * or returning it from an async function, is a mistake: the code would continue without a response. Accessing `then`
 * therefore throws an error that shows the line to write instead.
 */

/** Type of `then` on a description; the compiler rejects `await` because of it. */
export type NotAwaitable = (
  sendsNothing: 'a description sends nothing: write await step("name", description)',
) => never;

export class DescriptionAwaited extends Error {
  override readonly name = "DescriptionAwaited";

  /** `inSteps` is the code to suggest for a workflow of steps. */
  constructor(title: string, inSteps = "return http.send(…) in a step") {
    super(
      `${title} is only described, nothing was sent: write await step("name", …) in a flow, ` +
        `or ${inSteps} of a workflow`,
    );
  }
}
