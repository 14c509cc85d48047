/** A text cut to a bound, in characters that PostgreSQL can store: it has neither NUL nor half a pair. */
export function storable(text: string, charactersMax: number): string {
  return text.slice(0, charactersMax).replace(/\0|\p{Surrogate}/gu, "\uFFFD");
}
