/**
 * One iteration of a flow, shown call by call: what went out, what came back, what was ready before.
 * Secrets are masked: what is shown ends up in terminals and logs.
 */

import { formatDuration } from "../core/base/duration.ts";
import { errorText } from "../core/base/error-text.ts";
import type { LoadOverrides } from "../core/run/job/load-overrides.ts";
import type { CallResult, CallSettings } from "../protocols/protocol.ts";
import type { WorkflowDefinition } from "../workflow/definition.ts";
import { compile } from "./compiled.ts";
import { type OnceCall, Rehearsal, type ShownCall } from "./once.ts";
import { locationOf } from "./problem.ts";

/** Of a body, either way. */
const SHOWN_CHARACTERS = 300;
const SECRET_HEADERS = /^((?:proxy-)?authorization|(?:set-)?cookie|x-api-key): *([^\r\n]*)/gim;
const SECRET_FIELDS = /("[^"]*(?:token|password|secret|api_?key)[^"]*"\s*:\s*)"[^"]*"/gi;

export async function traceFlow(
  definition: WorkflowDefinition,
  overrides: LoadOverrides,
  folder: string,
  say: (line: string) => void,
): Promise<boolean> {
  const { flow } = definition;
  if (flow === null) {
    say(`"${definition.name}" is no flow: --trace shows one iteration of a flow`);
    return false;
  }
  const workflow = compile(definition, overrides);
  const show = (call: OnceCall, shown: ShownCall): void => {
    for (const line of linesOf(call, shown, workflow.settings)) say(line);
  };
  const seed = overrides.seed === undefined ? {} : { seed: overrides.seed };
  const rehearsal = new Rehearsal(workflow, flow, { folder, ...seed }, show);
  say(`flow "${definition.name}": one iteration, pauses left out`);
  const { checks, endedBy, error, notes, outcome } = await rehearsal.run();
  for (const { name, passed } of checks) say(`check ${passed ? "passed" : "FAILED"}: ${name}`);
  const location = locationOf(error);
  const why =
    error === undefined
      ? endedBy
      : `${errorText(error)}${location === null ? "" : ` (${location})`}`;
  say(`outcome: ${outcome}${why === null ? "" : `, ${why}`}`);
  for (const note of notes) say(`note: ${note}`);
  return outcome === "completed" && checks.every(({ passed }) => passed);
}

function linesOf(call: OnceCall, made: ShownCall, settings: CallSettings): string[] {
  const { name, phase, result } = call;
  const shown = made.described?.shown?.(settings);
  const requests = made.sent ?? (shown === undefined ? [] : [shown.request]);
  const how = shown === undefined ? result.protocol : `${result.protocol}, ${shown.prepared}`;
  const what = result.ok ? `ok` : `FAILED (${result.errorKind}): ${result.error}`;
  return [
    "",
    `${phase === null ? "" : `${phase}: `}${name}  ${what}  ${formatDuration(Math.round(result.durationMs))}  (${how})`,
    ...requests.flatMap((request) => indented("> ", request)),
    ...indented("< ", answerText(result)),
  ];
}

/** Status, headers and the beginning of the body, where the result has such. */
function answerText(result: CallResult): string {
  const head = result.status === 0 ? "" : `status ${result.status}\r\n`;
  const headers: unknown = "headers" in result ? result.headers : undefined;
  const lines =
    headers instanceof Map
      ? [...headers].map(([name, value]) => `${String(name)}: ${String(value)}\r\n`).join("")
      : "";
  return `${head}${lines}\r\n${bodyText(result)}`;
}

function bodyText(result: CallResult): string {
  if (!("text" in result) || typeof result.text !== "function") return "";
  try {
    return String(result.text());
  } catch {
    return "";
  }
}

/** Head and body apart; the body cut. */
function indented(mark: string, text: string): string[] {
  const end = text.indexOf("\r\n\r\n");
  const [head, body] = end < 0 ? [text, ""] : [text.slice(0, end), text.slice(end + 4)];
  const cut = body.length > SHOWN_CHARACTERS ? `${body.slice(0, SHOWN_CHARACTERS)}…` : body;
  return [...masked(head).split("\r\n"), ...masked(cut).split(/\r?\n/)]
    .filter((line) => line.trim() !== "")
    .map((line) => `  ${mark}${line}`);
}

function masked(text: string): string {
  return text.replace(SECRET_HEADERS, "$1: ***").replace(SECRET_FIELDS, '$1"***"');
}
