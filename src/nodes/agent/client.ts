/** Our own commands' side of the agent's control interface. */

import {
  ControlClient,
  type Reply,
  readLines,
  readReply,
  refusalOf,
  UnreachableError,
} from "../../host/control/client.ts";
import { type ControlTarget, TOKEN_ADVICE, tokenFor } from "../../host/control/token.ts";

export type AgentTarget = ControlTarget;

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
  const client = clientOf(target);
  try {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const reply = await client.call(method, path, { body: text, timeoutMs: TIMEOUT_MS });
    if (reply.status !== 200) throw refused(target, reply);
    return JSON.parse(reply.text) as Answer;
  } catch (error) {
    throw explained(error);
  } finally {
    client.close();
  }
}

/** Lines of the event stream, until the agent ends it or `signal` does. */
export async function* followAgent(
  target: AgentTarget,
  signal: AbortSignal,
): AsyncGenerator<string> {
  const client = clientOf(target);
  try {
    const stream = await client.open("/v1/events", signal);
    if (stream.statusCode !== 200) throw refused(target, await readReply(stream));
    for await (const line of readLines(stream)) if (line !== "") yield line;
  } catch (error) {
    throw explained(error);
  } finally {
    client.close();
  }
}

function clientOf(target: AgentTarget): ControlClient {
  return new ControlClient({ address: target.api, token: tokenFor(target) });
}

function explained(error: unknown): unknown {
  if (!(error instanceof UnreachableError)) return error;
  const { address, reason } = error;
  const hint = `is it running, and was it started with --api ${address}?`;
  return new AgentClientError(`no agent answers at ${address} (${reason}): ${hint}`, {
    cause: error,
  });
}

function refused({ api }: AgentTarget, reply: Reply): AgentClientError {
  if (reply.status === 401) return new AgentClientError(`${api} needs its token: ${TOKEN_ADVICE}`);
  return new AgentClientError(`the agent at ${api} refused: ${refusalOf(reply)}`);
}
