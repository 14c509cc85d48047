/** JSON-RPC over the control client. Errors are returned as the `QueueError` of the server. */

import type { IncomingMessage } from "node:http";
import { codeOfNumber, QueueError } from "../../core/queue/errors.ts";
import { ControlClient, UnreachableError } from "../../host/control/client.ts";
import { headerText } from "../../host/control/requester.ts";
import type { RpcResponse } from "./rpc.ts";

interface RpcClientOptions {
  readonly url: string;
  readonly token?: string | undefined;
  /** PEM: certificate authorities for `https://` addresses, in place of the default ones. */
  readonly ca?: string | undefined;
  /** The node that forwards calls: they are not forwarded again. */
  readonly forwardedBy?: string;
}

export class RpcClient {
  readonly url: string;
  readonly #client: ControlClient;
  #lastId = 0;

  constructor({ url, token, ca, forwardedBy }: RpcClientOptions) {
    this.url = url;
    const node =
      forwardedBy === undefined
        ? {}
        : { caller: { "x-hyperscale-forwarded": headerText(forwardedBy) } };
    this.#client = new ControlClient({ address: url, token, ca, ...node });
  }

  /** A long poll passes its own timeout. */
  async call(method: string, params: unknown, timeoutMs?: number): Promise<unknown> {
    const body = JSON.stringify({ jsonrpc: "2.0", id: ++this.#lastId, method, params });
    const { text } = await this.#client.call("POST", "/", { body, timeoutMs }).catch(unreachable);
    const response = parseResponse(text, this.url);
    if ("error" in response) throw errorOf(response.error);
    return response.result;
  }

  /** Opens a stream of the node, for following; the caller reads it to its end. */
  open(path: string, signal?: AbortSignal): Promise<IncomingMessage> {
    return this.#client.open(path, signal).catch(unreachable);
  }

  close(): void {
    this.#client.close();
  }
}

const UNKNOWN_AUTHORITY = "; --tls-ca names the file of the authority that signed its certificate";
/** Advice by the reason of a failed connection. */
const HINTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "; `hyperscale queue start` starts a node",
  SELF_SIGNED_CERT_IN_CHAIN: UNKNOWN_AUTHORITY,
  DEPTH_ZERO_SELF_SIGNED_CERT: UNKNOWN_AUTHORITY,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNKNOWN_AUTHORITY,
  EPROTO: "; is it a node without TLS, to be called by http://?",
};

function unreachable(error: unknown): never {
  if (!(error instanceof UnreachableError)) throw error;
  const hint = HINTS[error.reason] ?? "";
  const problem = `cannot reach the queue node at ${error.address}: ${error.reason}${hint}`;
  throw new QueueError("UNAVAILABLE", problem, { cause: error });
}

/** The connection was refused: the call cannot have had an effect. */
export function wasNeverSent(error: unknown): boolean {
  if (!(error instanceof QueueError && error.cause instanceof UnreachableError)) return false;
  return error.cause.reason === "ECONNREFUSED";
}

function parseResponse(text: string, url: string): RpcResponse {
  try {
    const value: unknown = JSON.parse(text);
    if (value !== null && typeof value === "object" && ("result" in value || "error" in value)) {
      return value as RpcResponse;
    }
  } catch {
    // Reported below, with the actual answer.
  }
  throw new QueueError(
    "UNAVAILABLE",
    `${url} did not answer as a queue node: ${text.slice(0, 200)}`,
  );
}

function errorOf(body: {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}): QueueError {
  const data =
    body.data !== null && typeof body.data === "object"
      ? (body.data as Record<string, unknown>)
      : undefined;
  return new QueueError(codeOfNumber(body.code), body.message, data === undefined ? {} : { data });
}
