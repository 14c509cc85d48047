/** What a caught value says: anything can be thrown, not only an `Error`. */
export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
