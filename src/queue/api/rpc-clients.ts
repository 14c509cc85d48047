/** Several nodes of one queue: prefers the one that answered last, and moves on where the connection is refused. */

import type { IncomingMessage } from "node:http";
import { QueueError } from "../../core/queue/errors.ts";
import { RpcClient, wasNeverSent } from "./rpc-client.ts";

export class RpcClients {
  readonly #clients: readonly RpcClient[];
  #at = 0;

  constructor(
    urls: readonly string[],
    access: { readonly token?: string | undefined; readonly ca?: string | undefined },
  ) {
    if (urls.length === 0) throw new QueueError("INVALID_PARAMS", "name at least one node");
    this.#clients = urls.map((url) => new RpcClient({ url: url.trim(), ...access }));
  }

  call(method: string, params: unknown): Promise<unknown> {
    return this.#inTurn((client) => client.call(method, params));
  }

  open(path: string, signal?: AbortSignal): Promise<IncomingMessage> {
    return this.#inTurn((client) => client.open(path, signal));
  }

  close(): void {
    for (const client of this.#clients) client.close();
  }

  /** A call that may have had an effect is not repeated elsewhere: only its caller knows whether that is safe. */
  async #inTurn<Answer>(call: (client: RpcClient) => Promise<Answer>): Promise<Answer> {
    for (let tried = 1; ; tried++) {
      const client = this.#clients[this.#at % this.#clients.length];
      if (client === undefined) throw new QueueError("INVALID_PARAMS", "name at least one node");
      try {
        return await call(client);
      } catch (error) {
        if (!wasNeverSent(error)) throw error;
        this.#at++;
        if (tried >= this.#clients.length) throw error;
      }
    }
  }
}
