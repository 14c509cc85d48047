/**
 * The session of a user whose requests somebody looks at: what each HTTP request was when it went out,
 * with the cookies of the user, hop by hop of a redirect.
 */

import { UserSession } from "./session.ts";

export class TracedSession extends UserSession {
  #held: string[] = [];
  /** Requests of calls that have ended, among those held. */
  #ended = 0;

  requestSent(text: string): void {
    this.#held.push(text);
  }

  /** The requests of a call that ended and sent so many; null when calls side by side mix them. */
  takeSent(count: number): readonly string[] | null {
    const held = this.#held;
    this.#ended += count;
    if (this.#ended >= held.length) {
      this.#held = [];
      this.#ended = 0;
    }
    return count > 0 && held.length === count ? held : null;
  }
}
