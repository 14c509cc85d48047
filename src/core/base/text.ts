/** Texts with a bound. */

/** Clips a text to a number of characters, with a sign that there were more. */
export function clipText(text: string, charactersMax: number): string {
  return text.length <= charactersMax ? text : `${text.slice(0, charactersMax)} …`;
}
