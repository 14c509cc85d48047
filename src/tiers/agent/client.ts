/** Our own commands' side of the agent's control interface. */

import { readFileSync } from "node:fs";

export interface AgentTarget {
  /** `host:port` */
  readonly api: string;
  readonly tokenFile?: string | undefined;
}

/** Something a person can act on, without a stack. */
export class AgentClientError extends Error {
  override readonly name = "AgentClientError";
}

const TIMEOUT_MS = 10_000;

export async function askAgent<Answer>(
  target: AgentTarget,
  method: "GET" | "POST",
  path: string,
  body?: unknown,
): Promise<Answer> {
  const response = await reach(target, path, {
    method,
    signal: AbortSignal.timeout(TIMEOUT_MS),
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return (await response.json()) as Answer;
}

/** Lines of the event stream, until the agent ends it or `signal` does. */
export async function* followAgent(
  target: AgentTarget,
  signal: AbortSignal,
): AsyncGenerator<string> {
  const response = await reach(target, "/v1/events", { signal });
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of response.body ?? []) {
    rest += decoder.decode(chunk as Uint8Array, { stream: true });
    const lines = rest.split("\n");
    rest = lines.pop() ?? "";
    yield* lines.filter((line) => line !== "");
  }
}

async function reach(
  { api, tokenFile }: AgentTarget,
  path: string,
  init: RequestInit,
): Promise<Response> {
  const headers =
    tokenFile === undefined
      ? {}
      : { authorization: `Bearer ${readFileSync(tokenFile, "utf8").trim()}` };
  const response = await fetch(`http://${api}${path}`, { ...init, headers }).catch(
    (error: unknown) => {
      throw new AgentClientError(
        `no agent answers at ${api}: is it running, and was it started with --api ${api}?`,
        { cause: error },
      );
    },
  );
  if (response.ok) return response;
  const answer = (await response.json().catch(() => null)) as { error?: string } | null;
  throw new AgentClientError(
    `the agent at ${api} refused: ${answer?.error ?? `status ${response.status}`}`,
  );
}
