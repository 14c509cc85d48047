/** Bearer tokens live in files: never in flags, which every user of the machine can read. */

import { readFileSync } from "node:fs";
import { errorText } from "../../core/base/error-text.ts";

const TOKEN_CHARACTERS_MIN = 16;

/** Throws with what is wrong and what to do. */
export function readTokenFile(file: string): string {
  let token: string;
  try {
    token = readFileSync(file, "utf8").trim();
  } catch (error) {
    throw new Error(`cannot read the token file ${file}: ${errorText(error)}`);
  }
  if (token.length >= TOKEN_CHARACTERS_MIN) return token;
  const hint = "make one with: openssl rand -hex 32";
  throw new Error(
    `the token in ${file} is shorter than ${TOKEN_CHARACTERS_MIN} characters; ${hint}`,
  );
}
