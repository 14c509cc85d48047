/**
 * Requests on their way to a primary elsewhere. A request is sent to the likeliest node, follows redirects, and is
 * tried elsewhere when there is no answer, until its deadline. Events and keys make repetition harmless, so a request
 * may arrive twice; it is answered once.
 */

import { Deadlines } from "../../base/deadlines.ts";
import type { NodeId } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import type { GroupId } from "../group/messages.ts";
import type { PeerRequest } from "./messages.ts";
import type { Reply } from "./reply.ts";

export interface Routed {
  readonly id: number;
  readonly group: GroupId;
  readonly reply: Reply;
  readonly request: PeerRequest;
  readonly deadline: number;
  /** Nodes that report no such group, in the current round. */
  readonly absent: Set<NodeId>;
  absentRounds: number;
  hint: NodeId | null;
  sentTo: NodeId | null;
  attempts: number;
  /** Why it is not answered yet, for the answer when time is over. */
  why: string;
}

export class Router {
  readonly #routed = new Map<number, Routed>();
  /** When to try again, or to give up. */
  readonly #timers = new Deadlines<Routed>();
  #ids: number;

  /**
   * Numbers begin somewhere else in every process: an answer to a request of the one before may still
   * come, and must not be taken for the answer to one of ours.
   */
  constructor(random: Random) {
    this.#ids = random.below(2 ** 31) * 2 ** 16;
  }

  get size(): number {
    return this.#routed.size;
  }

  nextDeadline(): number | null {
    return this.#timers.next();
  }

  add(group: GroupId, reply: Reply, request: PeerRequest, deadline: number): Routed {
    const id = ++this.#ids;
    const routed = {
      ...{ id, group, reply, request, deadline },
      ...{
        absent: new Set<NodeId>(),
        absentRounds: 0,
        hint: null,
        sentTo: null,
        attempts: 0,
        why: "no primary",
      },
    };
    this.#routed.set(id, routed);
    return routed;
  }

  get(id: number): Routed | undefined {
    return this.#routed.get(id);
  }

  remove(routed: Routed): void {
    this.#routed.delete(routed.id);
    this.#timers.delete(routed);
  }

  wakeAt(routed: Routed, at: number): void {
    this.#timers.set(routed, Math.min(at, routed.deadline));
  }

  takeDue(now: number): Routed[] {
    return this.#timers.takeDue(now);
  }
}
