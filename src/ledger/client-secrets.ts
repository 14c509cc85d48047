/** Secrets that clients may greet a node with. */

import { existsSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { z } from "zod";
import { secretSource } from "./config.ts";

/** `file`: the configuration that names it. Null: clients may not greet. */
export function clientSecrets(
  file: string,
  secretFile: string | undefined,
  problems: string[],
): (() => readonly string[]) | null {
  if (secretFile === undefined) return null;
  const path = resolve(dirname(file), secretFile);
  if (!existsSync(path)) {
    problems.push(`${file}: clientSecretFile: ${path}: no such file`);
    return null;
  }
  return secretSource(
    { secretFile: path, insecurePlaintext: false },
    (one) => one,
    (problem) => problems.push(`${file}: clients: ${problem}`),
  );
}

/** Sources whose code workers run; none by default, because code runs with the worker's rights. */
export const codeFrom = z
  .array(z.enum(["clients"]))
  .max(1)
  .default([]);
