/**
 * Session of a user whose requests are shown: records each HTTP request as sent, with the cookies of the user, hop by
 * hop of a redirect.
 */

import { UserSession } from "./session.ts";

export class TracedSession extends UserSession {
  #held: string[] = [];
  /** Requests of finished calls, among those recorded. */
  #ended = 0;

  requestSent(text: string): void {
    this.#held.push(text);
  }

  /** Takes the `count` requests of a finished call; null when concurrent calls mix them. */
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
