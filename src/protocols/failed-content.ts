/**
 * In a flow, a failed call is a value that can be inspected. Accessing content that it cannot have ends the iteration
 * because of that call, so that one failure is counted once. The flow registers here which error to throw; results
 * outside of flows behave as before.
 */

const ends = new WeakMap<object, () => Error>();

export function endWhenAsked(result: object, end: () => Error): void {
  ends.set(result, end);
}

/** Called first by every accessor of content: `json()`, `data`, `value`, `message`. */
export function contentAsked(result: { readonly errorKind: unknown }): void {
  if (result.errorKind === null) return;
  const end = ends.get(result);
  if (end !== undefined) throw end();
}
