/** Numbers and strings that must not be mixed up carry a brand that exists only for the compiler. */

declare const brand: unique symbol;
export type Brand<Value, Name extends string> = Value & { readonly [brand]: Name };

/** Milliseconds on a monotonic clock (or a span of them). Never wall-clock time. */
export type Millis = Brand<number, "Millis">;

export const millis = (value: number): Millis => value as Millis;
