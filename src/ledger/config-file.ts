/** Configuration as a JSON file: read and validated against its schema, with all mistakes reported at once. (CFG-1) */

import { readFileSync } from "node:fs";
import type { z } from "zod";
import { errorText } from "../core/base/error-text.ts";

export type ConfigResult<Config> =
  | { readonly ok: true; readonly config: Config }
  | { readonly ok: false; readonly problems: readonly string[] };

/** `advice`: where one gets such a file. */
export function readConfigFile<Config>(
  file: string,
  advice: string,
  check: (file: string, value: unknown) => ConfigResult<Config>,
): ConfigResult<Config> {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch {
    return { ok: false, problems: [`${file}: cannot be read; ${advice}`] };
  }
  let value: unknown;
  try {
    value = JSON.parse(plainJson(text));
  } catch (error) {
    return { ok: false, problems: [`${file}: not JSON: ${errorText(error)}`] };
  }
  return check(file, value);
}

/** Without comments to the end of a line and commas after a last value: what people write into such a file. */
function plainJson(text: string): string {
  const noComments = text.replace(/("(?:[^"\\\n]|\\.)*")|\/\/[^\n]*/g, (_, quoted = "") => quoted);
  return noComments.replace(/("(?:[^"\\\n]|\\.)*")|,(?=\s*[}\]])/g, (_, quoted = "") => quoted);
}

export function checkSchema<Value>(
  schema: z.ZodType<Value>,
  file: string,
  value: unknown,
): ConfigResult<Value> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return { ok: true, config: parsed.data };
  const problems = parsed.error.issues.map(({ message, path }) => {
    const said = message.endsWith("received undefined") ? "is missing" : message;
    return `${file}: ${path.length === 0 ? "the file" : path.join(".")}: ${said}`;
  });
  return { ok: false, problems };
}
