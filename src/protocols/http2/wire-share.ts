/** Divides the bytes of one direction of a connection among the calls that it carried side by side. */
export class WireShare {
  /** Bytes that have been given to a call. */
  #taken = 0;
  /** Payload of calls that have not taken their share yet. */
  #payload = 0;

  payload(bytes: number): void {
    this.#payload += bytes;
  }

  /** The share of a call that ends: its own payload, and of the framing one part in `active`. */
  take(total: number, ownPayload: number, active: number): number {
    const open = total - this.#taken;
    const framing = Math.max(0, open - this.#payload);
    const share = Math.min(open, ownPayload + Math.ceil(framing / active));
    this.#taken += share;
    this.#payload -= ownPayload;
    return share;
  }
}
