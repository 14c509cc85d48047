/** Callers waiting for an answer from this process, by request id. */

import type { StreamEnvelope } from "../../../wire/registry.ts";
import type { Millis } from "../../base/brand.ts";
import type { StreamId } from "../link/types.ts";
import type { Refusal } from "../messages.ts";
import { type Operation, operationOf } from "../overload/operations.ts";
import type { GuardRefusal, RequestGuard } from "../overload/request-guard.ts";

/** Open requests per caller; further ones are refused at once. */
const REQUESTS_PER_CALLER_MAX = 64;
const FULL_RETRY_MS = 200;

/** Kinds of callers whose code runs on workers. */
export type CodeFrom = readonly "clients"[];

interface Asker {
  /** Connection for the answer; undefined for requests of the process itself. */
  readonly stream?: StreamId;
}

interface Waiting<Who> {
  readonly who: Who;
  /** Null for requests that are not subject to admission. */
  readonly operation: Operation | null;
  readonly since: Millis;
}

interface Called {
  readonly stream: StreamId;
  readonly role: "worker" | "client" | "manager" | "gate";
  readonly name: string;
  readonly message: StreamEnvelope;
}

export class Askers<Who extends Asker> {
  readonly #guard: RequestGuard;
  readonly #acceptsCode: boolean;
  readonly #byId = new Map<number, Waiting<Who>>();
  readonly #perStream = new Map<StreamId, number>();
  #ids = 0;
  #now = 0 as Millis;

  /** `codeFrom`: callers that may submit jobs, whose code runs on workers. Undefined allows every authorised caller. */
  constructor(guard: RequestGuard, codeFrom?: CodeFrom) {
    this.#guard = guard;
    this.#acceptsCode = codeFrom?.includes("clients") ?? true;
  }

  at(now: Millis): void {
    this.#now = now;
  }

  /** Returns a unique id. */
  nextId(): number {
    return ++this.#ids;
  }

  add(who: Who): number {
    return this.#add(who, null);
  }

  /**
   * Returns the id of an admitted request, or a refusal if it must not start. Requests between managers and workers
   * have limits of their own.
   */
  admit(who: Who, { message, name, role, stream }: Called): number | Refusal {
    const operation = role === "client" || role === "gate" ? operationOf(message) : null;
    if (operation === null) return this.#add(who, null);
    if (role === "client" && !this.#acceptsCode && isSubmit(message)) return NO_CODE;
    if ((this.#perStream.get(stream) ?? 0) >= REQUESTS_PER_CALLER_MAX) return FULL;
    const caller = role === "client" ? name : null;
    const refused = this.#guard.admit(operation, caller, this.#now);
    return refused === null ? this.#add(who, operation) : refusalOf(refused);
  }

  /** Returns the id to execute a request under; null if it was refused. */
  begun(admitted: number | Refusal): number | null {
    if (typeof admitted === "number") return admitted;
    return this.#guard.rules.refusedUnbegun ? null : this.nextId();
  }

  /** Removes and returns the caller; undefined if it was answered or has disconnected. */
  take(id: number): Who | undefined {
    return this.#end(id, true);
  }

  forget(stream: StreamId): void {
    if (!this.#perStream.has(stream)) return;
    for (const [id, { who }] of this.#byId) if (who.stream === stream) this.#end(id, false);
  }

  #add(who: Who, operation: Operation | null): number {
    const id = this.nextId();
    this.#byId.set(id, { who, operation, since: this.#now });
    this.#count(who, 1);
    return id;
  }

  #end(id: number, isAnswered: boolean): Who | undefined {
    const waiting = this.#byId.get(id);
    if (waiting === undefined) return undefined;
    const { operation, since, who } = waiting;
    this.#byId.delete(id);
    this.#count(who, -1);
    if (operation !== null)
      this.#guard.done(operation, isAnswered ? this.#now - since : null, this.#now);
    return who;
  }

  #count({ stream }: Who, more: 1 | -1): void {
    if (stream === undefined) return;
    const waiting = (this.#perStream.get(stream) ?? 0) + more;
    if (waiting === 0) this.#perStream.delete(stream);
    else this.#perStream.set(stream, waiting);
  }
}

function isSubmit({ name, value }: StreamEnvelope): boolean {
  return name === "clientRequest" && value.kind === "submit";
}

const NO_CODE: Refusal = {
  kind: "refused",
  reason: "invalid",
  message: 'clients may send no code here: list "clients" in codeFrom of the configuration',
};

const FULL: Refusal = {
  kind: "refused",
  reason: "rateLimited",
  message: `${REQUESTS_PER_CALLER_MAX} requests of this client wait for an answer already`,
  retryAfterMs: FULL_RETRY_MS,
};

function refusalOf({ message, reason, retryAfterMs }: GuardRefusal): Refusal {
  return { kind: "refused", reason, message, retryAfterMs };
}
