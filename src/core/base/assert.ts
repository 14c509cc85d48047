/**
 * Assertions stay on in production. A failed one is a defect: the invariant named in the message was violated, and
 * continuing would act on an undefined state.
 */

export class Defect extends Error {
  override readonly name = "Defect";
}

export function assert(condition: boolean, held: string): asserts condition {
  if (!condition) throw new Defect(`invariant broken: ${held}`);
}

/** Closes a `switch` over a union: the compiler refuses a missing case, the run time an impossible value. */
export function assertNever(value: never): never {
  throw new Defect(`impossible value: ${JSON.stringify(value)}`);
}
