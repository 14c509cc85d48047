/** Rejects requests that a cluster could not read before anything is sent, with the user's names of options. */

import type { ClientRequest } from "../core/cluster/messages.ts";
import { type Hello, hello } from "../wire/hello.ts";
import { type Misfit, misfitOf } from "../wire/misfit.ts";
import { MESSAGES } from "../wire/registry.ts";

/** Name of an option as the user wrote it. */
export type NameOf = (option: string) => string;

/** Fields with another name as an option. */
const OPTIONS: Readonly<Record<string, string>> = {
  abortAfterMs: "abortOnFail",
  by: "as",
  count: "datacenterCount",
  name: "target",
  timeoutMs: "timeout",
  weights: "split",
};
/** Fields that combine several options. */
const WHOLES: readonly string[] = ["submission", "routing", "control"];

/** Null when it can be sent. */
export function requestProblem(request: ClientRequest, nameOf: NameOf): string | null {
  return said(misfitOf(MESSAGES.clientRequest.type.shape, request), nameOf);
}

export function helloProblem(greeting: Hello, nameOf: NameOf): string | null {
  return said(misfitOf(hello.shape, greeting), nameOf);
}

function said(misfit: Misfit | null, nameOf: NameOf): string | null {
  if (misfit === null) return null;
  const { path, problem } = misfit;
  const field = path.find((name) => !WHOLES.includes(name)) ?? "request";
  return `${nameOf(OPTIONS[field] ?? field)} ${problem}`;
}
