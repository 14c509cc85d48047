/** What the reader of the results must know about the connections of a run, each said once. */

const NOTES_MAX = 100;
const notes = new Set<string>();

export function noteOnce(text: string): void {
  if (notes.size < NOTES_MAX) notes.add(text);
}

export function connectionNotes(): readonly string[] {
  return [...notes];
}
