/** Message size of a value, and its largest part, for errors about oversized values. (CTX-11) */

/** Maximum size of one provided value. Context is for tokens, ids and summaries, not for streams. */
export const PROVIDED_BYTES_MAX = 1024 * 1024;

/** Approximate JSON size: text by its length, numbers as eight bytes, parts with their names. */
export function valueBytes(value: unknown): number {
  return sized(value, new Set());
}

/** The path descends while one part makes up at least this share. */
const HEAVY_SHARE = 0.5;

/** The path of the largest part: `.rows[3].body`; empty for the value itself. */
export function heaviestPath(value: unknown): string {
  const parts = partsOf(value).map(([name, part]) => ({ name, part, bytes: valueBytes(part) }));
  const all = parts.reduce((sum, { bytes }) => sum + bytes, 0);
  const heaviest = parts.reduce<(typeof parts)[number] | null>(
    (most, one) => (most === null || one.bytes > most.bytes ? one : most),
    null,
  );
  if (heaviest === null || heaviest.bytes < all * HEAVY_SHARE) return "";
  return heaviest.name + heaviestPath(heaviest.part);
}

function sized(value: unknown, seen: Set<object>): number {
  if (typeof value === "string") return value.length + 2;
  if (typeof value !== "object" || value === null) return 8;
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return value.byteLength;
  if (seen.has(value)) return 8;
  seen.add(value);
  return partsOf(value).reduce((sum, [name, part]) => sum + name.length + sized(part, seen), 2);
}

function partsOf(value: unknown): [string, unknown][] {
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return [];
  if (Array.isArray(value)) return value.map((part, at) => [`[${at}]`, part]);
  if (value instanceof Map) return [...value].map(([key, part]) => [`[${String(key)}]`, part]);
  if (value instanceof Set) return [...value].map((part, at) => [`[${at}]`, part]);
  return Object.entries(value).map(([key, part]) => [`.${key}`, part]);
}
