/**
 * Calls of one user of a flow: those under way, and finished ones for reuse. Linked lists, because sets and arrays cost
 * more than the rest of a short call, and many bytes for idle users.
 */

import { type CallOwner, FlowCall } from "./flow-call.ts";

export class FlowCalls {
  readonly #owner: CallOwner;
  #underWay: FlowCall | null = null;
  #spare: FlowCall | null = null;

  constructor(owner: CallOwner) {
    this.#owner = owner;
  }

  get none(): boolean {
    return this.#underWay === null;
  }

  /** Returns a call that is under way from now on. */
  take(): FlowCall {
    const call = this.#spare ?? new FlowCall(this.#owner);
    if (this.#spare !== null) this.#spare = call.next;
    call.next = this.#underWay;
    if (call.next !== null) call.next.previous = call;
    this.#underWay = call;
    return call;
  }

  /** Returns a finished call for reuse. */
  giveBack(call: FlowCall): void {
    const { next, previous } = call;
    if (previous !== null) previous.next = next;
    else if (this.#underWay === call) this.#underWay = next;
    // Returned before, or forgotten.
    else return;
    if (next !== null) next.previous = previous;
    call.previous = null;
    call.next = this.#spare;
    this.#spare = call;
  }

  /** Calls under way, in the order in which they began. */
  underWay(): FlowCall[] {
    const calls: FlowCall[] = [];
    for (let call = this.#underWay; call !== null; call = call.next) calls.push(call);
    return calls.reverse();
  }

  /** Disowns the calls under way. */
  forgetAll(): void {
    for (const call of this.underWay()) {
      call.previous = null;
      call.next = null;
    }
    this.#underWay = null;
  }
}
