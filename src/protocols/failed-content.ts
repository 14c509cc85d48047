/**
 * In a flow a failed call is a value to look at. Asking it for content it cannot have ends the
 * iteration because of that call, so that one failure is counted once. Who made the call says here
 * what to throw then; results outside of flows answer as they always did.
 */

const ends = new WeakMap<object, () => Error>();

export function endWhenAsked(result: object, end: () => Error): void {
  ends.set(result, end);
}

/** Called first by everything that gives content: `json()`, `data`, `value`, `message`. */
export function contentAsked(result: { readonly errorKind: unknown }): void {
  if (result.errorKind === null) return;
  const end = ends.get(result);
  if (end !== undefined) throw end();
}
