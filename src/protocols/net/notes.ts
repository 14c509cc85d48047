/** Notes on the connections of a run for the reader of its results, each recorded once. */

const NOTES_MAX = 100;
const notes = new Set<string>();

export function noteOnce(text: string): void {
  if (notes.size < NOTES_MAX) notes.add(text);
}

export function connectionNotes(): readonly string[] {
  return [...notes];
}
