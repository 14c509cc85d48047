/** Converts HTTP bodies to values of the right form, or to a problem text. */

import { z } from "zod";

export type Read<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly problem: string };

export const base64 = z.string().regex(/^[A-Za-z0-9+/]*={0,2}$/, "must be base64");

export function check<Schema extends z.ZodType>(
  schema: Schema,
  body: unknown,
): Read<z.output<Schema>> {
  const parsed = schema.safeParse(body);
  if (parsed.success) return { ok: true, value: parsed.data };
  const [issue] = parsed.error.issues;
  const at = issue === undefined || issue.path.length === 0 ? "the body" : issue.path.join(".");
  return { ok: false, problem: `${at}: ${issue?.message ?? "is wrong"}` };
}
