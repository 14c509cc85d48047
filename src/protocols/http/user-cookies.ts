/** The cookies of one virtual user: one jar, whichever version of HTTP a call goes over. */

import type { CallSettings, SessionKey, SessionState } from "../protocol.ts";
import { CookieJar } from "./cookie-jar.ts";
import type { HttpMessage } from "./message.ts";

export class UserCookies implements SessionState {
  readonly #lifetime: CallSettings["cookies"];
  /** Null until the first cookie comes: most virtual users never have one. */
  #jar: CookieJar | null = null;

  /** There only where an iteration begins without cookies. */
  readonly reset: (() => void) | undefined;

  constructor(lifetime: CallSettings["cookies"]) {
    this.#lifetime = lifetime;
    this.reset =
      lifetime !== "iteration"
        ? undefined
        : () => {
            this.#jar = null;
          };
  }

  /** The message as this user sends it. */
  apply<Sent>(message: HttpMessage<Sent>): Sent {
    if (this.#jar === null || this.#jar.size === 0) return message.sent;
    return message.sentWith(this.#jar.header(message.cookieOrigin, Date.now()));
  }

  /** Takes the Set-Cookie lines of an answer. */
  arrived(message: HttpMessage<unknown>, lines: readonly string[]): void {
    if (this.#lifetime === "off") return;
    this.#jar ??= new CookieJar();
    this.#jar.store(lines, message.cookieOrigin, Date.now());
  }

  close(): void {}
}

/** Every request passes here for its cookies, so here it can be shown with them. */
class ShownCookies extends UserCookies {
  readonly #show: (text: string) => void;

  constructor(lifetime: CallSettings["cookies"], show: (text: string) => void) {
    super(lifetime);
    this.#show = show;
  }

  override apply<Sent>(message: HttpMessage<Sent>): Sent {
    const sent = super.apply(message);
    this.#show(textOf(sent));
    return sent;
  }
}

/** HTTP/1.1 is bytes, or a string of them; HTTP/2 shows itself. */
function textOf(sent: unknown): string {
  return Buffer.isBuffer(sent) ? sent.toString("latin1") : String(sent);
}

export const userCookies: SessionKey<UserCookies> = {
  name: "cookies",
  create: (session) => {
    const { cookies } = session.settings;
    return session.requestSent === undefined
      ? new UserCookies(cookies)
      : new ShownCookies(cookies, (text) => session.requestSent?.(text));
  },
};
