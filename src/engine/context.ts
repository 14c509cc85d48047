/** Contexts that user functions receive: one per virtual user, and one for setup and teardown. */

import { clock } from "../protocols/call.ts";
import type { Clients, Session } from "../protocols/protocol.ts";
import type { SetupContext, UserInfo } from "../workflow/context.ts";
import { clientGetters, SessionClients } from "./clients.ts";
import type { Iteration } from "./iteration.ts";
import type { TimeLimit } from "./time-limit.ts";

/** Interface of a context to its execution. */
export interface ContextHost {
  readonly setup: unknown;
  readonly used: Readonly<Record<string, unknown>>;
  readonly core: number;
  readonly signal: AbortSignal;
  sleep(ms: number): Promise<void>;
  readonly abort: (reason: string) => void;
}

const NOTHING = Object.freeze({});

class OneUserContext {
  /** Results of this iteration; one that keeps any has an object of its own. */
  results: Record<string, unknown> = NOTHING;
  data: Readonly<Record<string, unknown>> = NOTHING;
  iteration = 0;
  /** Time limit of `userSetup` or `userTeardown`, while it runs. */
  limit: TimeLimit | null = null;
  readonly #host: ContextHost;
  readonly #clients: SessionClients;
  readonly #id: number;
  readonly #iteration: Iteration;
  #vars: Record<string, unknown> | undefined;
  #user: UserInfo | undefined;
  static readonly addClients = clientGetters(
    OneUserContext.prototype,
    (context) => context.#clients,
  );

  constructor(id: number, host: ContextHost, session: Session, iteration: Iteration) {
    OneUserContext.addClients();
    this.#iteration = iteration;
    this.#id = id;
    this.#host = host;
    this.#clients = new SessionClients(session);
  }

  get used(): Readonly<Record<string, unknown>> {
    return this.#host.used;
  }
  get setup(): unknown {
    return this.#host.setup;
  }
  get vars(): Record<string, unknown> {
    this.#vars ??= {};
    return this.#vars;
  }
  get user(): UserInfo {
    if (this.#user?.iteration !== this.iteration) {
      this.#user = { id: this.#id, iteration: this.iteration, core: this.#host.core };
    }
    return this.#user;
  }
  get signal(): AbortSignal {
    return this.limit === null ? this.#host.signal : this.limit.signal;
  }
  get abort(): (reason: string) => void {
    return this.#host.abort;
  }
  /** Created on first use: most users never sleep. */
  get sleep(): (ms: number) => Promise<void> {
    return (ms) => {
      if (typeof ms !== "number" || Number.isNaN(ms))
        throw new TypeError(
          `sleep takes milliseconds, such as sleep(1000), not ${JSON.stringify(ms)}`,
        );
      this.#iteration.pause(ms, clock());
      return this.#host.sleep(ms);
    };
  }
}

/** Context of one step's function: everything of its user, and clients whose calls are attributed to the step. */
class OneStepContext {
  readonly #user: OneUserContext;
  readonly #clients: SessionClients;
  static readonly addClients = clientGetters(
    OneStepContext.prototype,
    (context) => context.#clients,
  );

  constructor(user: OneUserContext, session: Session) {
    OneStepContext.addClients();
    this.#user = user;
    this.#clients = new SessionClients(session);
  }

  get results(): Record<string, unknown> {
    return this.#user.results;
  }
  get data(): Readonly<Record<string, unknown>> {
    return this.#user.data;
  }
  get used(): Readonly<Record<string, unknown>> {
    return this.#user.used;
  }
  get setup(): unknown {
    return this.#user.setup;
  }
  get vars(): Record<string, unknown> {
    return this.#user.vars;
  }
  get user(): UserInfo {
    return this.#user.user;
  }
  get signal(): AbortSignal {
    return this.#user.signal;
  }
  get abort(): (reason: string) => void {
    return this.#user.abort;
  }
  get sleep(): (ms: number) => Promise<void> {
    return this.#user.sleep;
  }
}

export function stepContext(user: UserContext, session: Session): OneStepContext & Clients {
  return new OneStepContext(user, session) as OneStepContext & Clients;
}

export type UserContext = OneUserContext & Clients;

export function userContext(
  id: number,
  host: ContextHost,
  session: Session,
  iteration: Iteration,
): UserContext {
  return new OneUserContext(id, host, session, iteration) as UserContext;
}

/** Interface of setup and teardown to their core. */
interface SetupHost {
  readonly limit: TimeLimit;
  abort(reason: string): void;
}

class OneSetupContext {
  readonly abort: (reason: string) => void;
  readonly #limit: TimeLimit;
  readonly setup: unknown;
  readonly #clients: SessionClients;
  static readonly addClients = clientGetters(
    OneSetupContext.prototype,
    (context) => context.#clients,
  );

  constructor(session: Session, host: SetupHost, setup: unknown) {
    OneSetupContext.addClients();
    this.#clients = new SessionClients(session);
    this.#limit = host.limit;
    this.abort = host.abort;
    this.setup = setup;
  }

  get signal(): AbortSignal {
    return this.#limit.signal;
  }
}

/** `setup` is the return value of setup; undefined while it runs. */
export function setupContext(
  session: Session,
  host: SetupHost,
  setup?: unknown,
): SetupContext & { readonly setup: unknown } {
  return new OneSetupContext(session, host, setup) as OneSetupContext & Clients;
}
