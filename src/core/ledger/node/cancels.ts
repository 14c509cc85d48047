/**
 * Cancels and aborts requested by clients of this node. One that does not commit soon is passed on: the job's watchers
 * here and at every reachable node are notified, since stopping load is the safe side, and the client is informed that
 * the cancel is passed on but not committed. This node proposes it again until it is decided, over any number of
 * primaries. (G-18, VSR-32)
 *
 *     requested ──► proposed ──decided in time──► answered
 *                      ├──not yet──► watchers notified, "passed on" ──► proposed again ──► decided
 *
 * Cancels are kept in memory only: a restarted node has forgotten them, and the client may retry with the same event. A
 * cancel with a condition may have no effect, so it is never passed on.
 */

import { Deadlines } from "../../base/deadlines.ts";
import { isCancel, type JobEvent } from "../job/events.ts";
import type { LedgerContext } from "./context.ts";
import type { LedgerAnswer, PeerRequest } from "./messages.ts";
import type { Reply } from "./reply.ts";

type Append = Extract<PeerRequest, { kind: "append" }>;

/** Cancels that one node keeps; beyond it they are requests like any other. */
export const CANCELS_KEPT_MAX = 4_096;
/** Longer than a commit takes, and shorter than a failover. */
export const PASS_ON_AFTER_MS = 500;

const PASSED_ON =
  "passed on, not committed: no quorum has confirmed it yet; this node proposes it until one does";

interface Kept {
  readonly key: string;
  readonly request: Append;
  /** Clients without an answer. */
  tokens: number[];
  passedOn: boolean;
}

interface Services {
  route(reply: Reply, request: PeerRequest): void;
  /** Notifies the job's watchers at this node. */
  stop(event: JobEvent): void;
}

export class Cancels {
  readonly #context: LedgerContext;
  readonly #services: Services;
  readonly #kept = new Map<string, Kept>();
  readonly #passOn = new Deadlines<Kept>();
  readonly #again = new Deadlines<Kept>();
  #waiting = 0;

  constructor(context: LedgerContext, services: Services) {
    this.#context = context;
    this.#services = services;
  }

  /** Clients without an answer. */
  get waiting(): number {
    return this.#waiting;
  }

  nextDeadline(): number | null {
    const never = Number.POSITIVE_INFINITY;
    const at = Math.min(this.#passOn.next() ?? never, this.#again.next() ?? never);
    return at === never ? null : at;
  }

  /** False when the request is none of these, or there is no place for it. */
  take(token: number, request: PeerRequest): boolean {
    if (request.kind !== "append" || !isCancel(request.event)) return false;
    if (request.event.condition !== undefined) return false;
    const key = `${request.event.jobId}/${request.event.eventId}`;
    const known = this.#kept.get(key);
    if (known === undefined && this.#kept.size >= CANCELS_KEPT_MAX) return false;
    const kept = known ?? { key, request, tokens: [], passedOn: false };
    const { now, options } = this.#context;
    this.#kept.set(key, kept);
    kept.tokens.push(token);
    this.#waiting++;
    this.#passOn.set(kept, now + Math.min(PASS_ON_AFTER_MS, options.config.requestTimeoutMs));
    if (known === undefined) this.#propose(kept);
    return true;
  }

  onAnswer({ key }: Extract<Reply, { kind: "cancel" }>, answer: LedgerAnswer): void {
    const kept = this.#kept.get(key);
    if (kept === undefined) return;
    const open = answer.kind === "unknown" || answer.kind === "retry";
    const { now, options } = this.#context;
    if (open && options.rules.node.cancelsKept) {
      this.#again.set(kept, now + options.config.routeRetryMs);
      return;
    }
    this.#kept.delete(key);
    this.#passOn.delete(kept);
    this.#answer(kept, answer);
  }

  onTick(now: number): void {
    for (const kept of this.#passOn.takeDue(now)) this.#tell(kept);
    for (const kept of this.#again.takeDue(now)) this.#propose(kept);
  }

  #propose({ key, request }: Kept): void {
    this.#services.route({ kind: "cancel", key }, request);
  }

  #tell(kept: Kept): void {
    const { event } = kept.request;
    const { self, topology } = this.#context;
    if (!kept.passedOn) {
      kept.passedOn = true;
      this.#services.stop(event);
      for (const node of topology.nodes) {
        if (node !== self) this.#context.send(node, { kind: "stop", event });
      }
    }
    const { jobId, eventId } = event;
    this.#answer(kept, { kind: "passedOn", jobId, eventId, why: PASSED_ON });
  }

  #answer(kept: Kept, answer: LedgerAnswer): void {
    for (const token of kept.tokens) this.#context.emit({ kind: "answer", token, answer });
    this.#waiting -= kept.tokens.length;
    kept.tokens = [];
  }
}
