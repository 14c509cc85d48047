/** Turns an error into what a person needs: the message, and the position in their own file. */

import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { errorText } from "../core/base/error-text.ts";
import { maskCredentials } from "../core/base/mask-credentials.ts";
import type { Problem } from "../core/load/job/core-messages.ts";
import { DefinitionError } from "../workflow/errors.ts";

/** Folders of this package's code, built and as the source maps name it; frames there are not the user's. */
const PACKAGE = fileURLToPath(new URL("../..", import.meta.url));
const OWN_CODE = [`${PACKAGE}dist/`, `${PACKAGE}src/`];

export function problemOf(error: unknown): Problem {
  const mistake =
    error instanceof DefinitionError || error instanceof TypeError || error instanceof SyntaxError;
  return {
    message: maskCredentials(messageOf(error)),
    location: locationOf(error),
    mistake: mistake || error instanceof ReferenceError,
  };
}

/** Name of this package in the bundle of a workflow. */
const OWN_INDEX = `'${new URL("../index.js", import.meta.url).href}'`;

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return errorText(error);
  const cause = error.cause instanceof Error ? `: ${error.cause.message}` : "";
  const missing = /^Cannot find package '([^']+)'/.exec(error.message);
  if (missing !== null && /^k6(\/|$)/.test(missing[1] ?? ""))
    return "this is a script for k6, whose modules exist only there; see docs/guide/beside-other-tools.md";
  if (missing !== null) return `${missing[0]}; install it with: npm install ${missing[1]}`;
  const message = error.message.replace(OWN_INDEX, '"hyperscalejs"');
  return message.includes(cause.slice(2)) ? message : `${message}${cause}`;
}

/** "flow.ts:12:5", relative to the working directory; null when no frame is the user's. */
export function locationOf(error: unknown): string | null {
  if (!(error instanceof Error) || error.stack === undefined) return null;
  for (const line of error.stack.split("\n")) {
    const match = /(?:\(|at )(?:async )?((?:file:\/\/)?\/[^():]+):(\d+):(\d+)\)?$/.exec(
      line.trim(),
    );
    if (match?.[1] === undefined) continue;
    const path = match[1].startsWith("file:") ? fileURLToPath(match[1]) : match[1];
    const own = OWN_CODE.some((folder) => path.startsWith(folder));
    if (own || path.includes("/node_modules/")) continue;
    return `${relative(process.cwd(), path)}:${match[2]}:${match[3]}`;
  }
  return null;
}
