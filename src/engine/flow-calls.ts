/**
 * The calls of one user of a flow: those under way, and those that have ended and can be used again.
 * Chains, because sets and lists cost more than the rest of a short call, and idle users many bytes.
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

  /** One that is under way from now on. */
  take(): FlowCall {
    const call = this.#spare ?? new FlowCall(this.#owner);
    if (this.#spare !== null) this.#spare = call.next;
    call.next = this.#underWay;
    if (call.next !== null) call.next.previous = call;
    this.#underWay = call;
    return call;
  }

  /** It has ended. */
  giveBack(call: FlowCall): void {
    const { next, previous } = call;
    if (previous !== null) previous.next = next;
    else if (this.#underWay === call) this.#underWay = next;
    // Given back before, or forgotten.
    else return;
    if (next !== null) next.previous = previous;
    call.previous = null;
    call.next = this.#spare;
    this.#spare = call;
  }

  /** In the order in which they began. */
  underWay(): FlowCall[] {
    const calls: FlowCall[] = [];
    for (let call = this.#underWay; call !== null; call = call.next) calls.push(call);
    return calls.reverse();
  }

  /** Those under way are nobody's any more. */
  forgetAll(): void {
    for (const call of this.underWay()) {
      call.previous = null;
      call.next = null;
    }
    this.#underWay = null;
  }
}
