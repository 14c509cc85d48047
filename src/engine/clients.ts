/**
 * Clients in the contexts of user functions: one getter per registered protocol on the prototype, and the client
 * created on first use. The engine knows none of them by name.
 */

import {
  type Clients,
  type Protocol,
  registeredProtocols,
  type Session,
} from "../protocols/protocol.ts";

/** The clients of all protocols over one session. */
export class SessionClients {
  readonly #session: Session;
  /** By index among the registered protocols; null until one is used. */
  #made: unknown[] | null = null;

  constructor(session: Session) {
    this.#session = session;
  }

  client(at: number, protocol: Protocol<keyof Clients>): unknown {
    this.#made ??= [];
    this.#made[at] ??= protocol.client(this.#session);
    return this.#made[at];
  }
}

/**
 * Returns a function that adds missing getters to the shared prototype. Workflow files may register protocols of their
 * own, so it is called whenever such an object is made.
 */
export function clientGetters<Context extends object>(
  prototype: Context,
  clientsOf: (context: Context) => SessionClients,
): () => void {
  let defined = 0;
  return () => {
    const protocols = registeredProtocols();
    if (defined === protocols.length) return;
    for (const [at, protocol] of protocols.entries()) {
      if (at < defined) continue;
      Object.defineProperty(prototype, protocol.name, {
        get(this: Context) {
          return clientsOf(this).client(at, protocol);
        },
      });
    }
    defined = protocols.length;
  };
}
