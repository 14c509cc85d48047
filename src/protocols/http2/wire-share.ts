/** Divides the bytes of one direction of a connection among its concurrent calls. */
export class WireShare {
  /** Bytes that have been charged to a call. */
  #taken = 0;
  /** Payload of calls that have not taken their share yet. */
  #payload = 0;

  payload(bytes: number): void {
    this.#payload += bytes;
  }

  /** Returns the share of a call that finishes: its own payload, plus one part in `active` of the framing. */
  take(total: number, ownPayload: number, active: number): number {
    const open = total - this.#taken;
    const framing = Math.max(0, open - this.#payload);
    const share = Math.min(open, ownPayload + Math.ceil(framing / active));
    this.#taken += share;
    this.#payload -= ownPayload;
    return share;
  }
}
