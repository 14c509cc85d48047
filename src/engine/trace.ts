/**
 * One iteration of a flow, shown call by call: what was sent, what was received, what was prepared. Secrets are masked,
 * since the output ends up in terminals and logs.
 */

import { formatDuration } from "../core/base/duration.ts";
import { errorText } from "../core/base/error-text.ts";
import type { LoadOverrides } from "../core/load/job/load-overrides.ts";
import type { CallResult, CallSettings } from "../protocols/protocol.ts";
import type { WorkflowDefinition } from "../workflow/definition.ts";
import { compile } from "./compiled.ts";
import { type OnceCall, Rehearsal, type ShownCall } from "./once.ts";
import { locationOf } from "./problem.ts";
import { TraceSecrets } from "./trace-secrets.ts";

/** Characters shown of a body, sent or received. */
const SHOWN_CHARACTERS = 300;

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
  const secrets = new TraceSecrets();
  const show = (call: OnceCall, shown: ShownCall): void => {
    for (const line of linesOf(call, shown, workflow.settings, secrets)) say(line);
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

function linesOf(
  call: OnceCall,
  made: ShownCall,
  settings: CallSettings,
  secrets: TraceSecrets,
): string[] {
  const { name, phase, result } = call;
  const shown = made.described?.shown?.(settings);
  const requests = made.sent ?? (shown === undefined ? [] : [shown.request]);
  const how = shown === undefined ? result.protocol : `${result.protocol}, ${shown.prepared}`;
  const what = result.ok ? `ok` : `FAILED (${result.errorKind}): ${result.error}`;
  const answer = answerText(result);
  for (const text of [...requests, answer]) secrets.learn(text);
  return [
    "",
    `${phase === null ? "" : `${phase}: `}${name}  ${what}  ${formatDuration(Math.round(result.durationMs))}  (${how})`,
    ...requests.flatMap((request) => indented("> ", request, secrets)),
    ...indented("< ", answer, secrets),
  ];
}

/** Status, headers and the beginning of the body, where the result has them. */
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

/** Head and body apart; the body truncated. */
function indented(mark: string, text: string, secrets: TraceSecrets): string[] {
  const end = text.indexOf("\r\n\r\n");
  const [head, body] = end < 0 ? [text, ""] : [text.slice(0, end), text.slice(end + 4)];
  // Masked before it is cut: half a secret is not recognised.
  const whole = secrets.mask(body);
  const cut = whole.length > SHOWN_CHARACTERS ? `${whole.slice(0, SHOWN_CHARACTERS)}…` : whole;
  return [...secrets.mask(head).split("\r\n"), ...cut.split(/\r?\n/)]
    .filter((line) => line.trim() !== "")
    .map((line) => `  ${mark}${line}`);
}
