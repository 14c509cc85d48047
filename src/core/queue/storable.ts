/** Cuts a text to a bound, in characters that PostgreSQL can store: neither NUL nor half a surrogate pair. */
export function storable(text: string, charactersMax: number): string {
  return text.slice(0, charactersMax).replace(/\0|\p{Surrogate}/gu, "\uFFFD");
}
