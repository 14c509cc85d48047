/** A part of a whole, as people write it: 0.05 or "5%". */
export type Share = number | `${number}%`;

/** Null for what is no share from 0 to 1. */
export function parseShare(value: unknown): number | null {
  const text = String(value).trim();
  const share = text.endsWith("%") ? Number(text.slice(0, -1)) / 100 : Number(text);
  return text !== "" && share >= 0 && share <= 1 ? share : null;
}
