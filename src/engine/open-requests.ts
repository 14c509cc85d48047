/**
 * What a core has asked its manager for and not heard of: blocks of indices, and what all cores share. Another
 * manager may lead the job by then, which is asked again; an answer that comes twice counts once.
 */

import type { CoreCommand, CoreEvent } from "../core/load/job/core-messages.ts";
import type { SharedAnswer, SharedRequest } from "../core/load/job/shared-values.ts";

type LeaseEvent = Extract<CoreEvent, { kind: "lease" }>;

interface OpenShared {
  readonly event: Extract<CoreEvent, { kind: "shared" }>;
  readonly answered: (answer: SharedAnswer) => void;
}

export class OpenRequests {
  readonly #send: (event: CoreEvent) => void;
  /** By their names: each lease has one request at a time. */
  readonly #leases = new Map<string, LeaseEvent>();
  readonly #shared = new Map<number, OpenShared>();
  #requests = 0;

  constructor(send: (event: CoreEvent) => void) {
    this.#send = send;
  }

  lease(execution: number, name: string, size: number): void {
    const event = { kind: "lease", execution, name, size, request: ++this.#requests } as const;
    this.#leases.set(name, event);
    this.#send(event);
  }

  /** False when it was answered before, or is of an execution that is over. */
  onLease({ execution, name, request }: Extract<CoreCommand, { kind: "lease" }>): boolean {
    const open = this.#leases.get(name);
    if (open?.request !== request || open.execution !== execution) return false;
    this.#leases.delete(name);
    return true;
  }

  ask(request: SharedRequest): Promise<SharedAnswer> {
    const id = ++this.#requests;
    return new Promise((answered) => {
      const event = { kind: "shared", id, request } as const;
      this.#shared.set(id, { event, answered });
      this.#send(event);
    });
  }

  onShared({ answer, id }: Extract<CoreCommand, { kind: "shared" }>): void {
    this.#shared.get(id)?.answered(answer);
    this.#shared.delete(id);
  }

  /** Nobody waits any more for blocks of an execution before. */
  prepare(): void {
    this.#leases.clear();
  }

  again(): void {
    for (const event of this.#leases.values()) this.#send(event);
    for (const { event } of this.#shared.values()) this.#send(event);
  }
}
