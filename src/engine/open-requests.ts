/**
 * Unanswered requests of a core to its manager: blocks of indices, and values shared by all cores. After a failover
 * they are sent to the new manager; a duplicate answer counts once.
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
  /** By name: each lease has one request at a time. */
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

  /** Returns false when it was answered before, or belongs to a finished execution. */
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

  /** Drops requests of the previous execution. */
  prepare(): void {
    this.#leases.clear();
  }

  again(): void {
    for (const event of this.#leases.values()) this.#send(event);
    for (const { event } of this.#shared.values()) this.#send(event);
  }
}
