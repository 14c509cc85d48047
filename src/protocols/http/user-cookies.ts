/**
 * Adds the state of one virtual user to its requests, for any version of HTTP: the cookies of one jar, and its trace.
 */

import type { MeasuredCall } from "../call.ts";
import type { CallSettings, Session, SessionKey, SessionState } from "../protocol.ts";
import type { TraceContext } from "../trace-context.ts";
import { CookieJar } from "./cookie-jar.ts";
import type { HttpMessage } from "./message.ts";

/** Carries the trace of a call's requests; "" for none. */
type Traced = Pick<MeasuredCall, "traceparent">;

export class UserCookies implements SessionState {
  readonly #lifetime: CallSettings["cookies"];
  readonly #trace: TraceContext | null;
  /** Null until the first cookie arrives; most virtual users never have one. */
  #jar: CookieJar | null = null;

  /** Defined only when iterations begin without cookies. */
  readonly reset: (() => void) | undefined;

  constructor(lifetime: CallSettings["cookies"], trace: TraceContext | null = null) {
    this.#lifetime = lifetime;
    this.#trace = trace;
    this.reset =
      lifetime !== "iteration"
        ? undefined
        : () => {
            this.#jar = null;
          };
  }

  /** Encodes the message with the cookies and trace of this user. */
  apply<Sent>(message: HttpMessage<Sent>, call: Traced): Sent {
    // All requests of a call belong to one span, including those of redirects.
    if (this.#trace !== null && call.traceparent === "") call.traceparent = this.#trace.next();
    const { traceparent } = call;
    const jar = this.#jar;
    if (jar === null || jar.size === 0)
      return traceparent === "" ? message.sent : message.sentWith("", traceparent);
    return message.sentWith(jar.header(message.cookieOrigin, Date.now()), traceparent);
  }

  /** Stores the Set-Cookie lines of a response. */
  arrived(message: HttpMessage<unknown>, lines: readonly string[]): void {
    if (this.#lifetime === "off") return;
    this.#jar ??= new CookieJar();
    this.#jar.store(lines, message.cookieOrigin, Date.now());
  }

  close(): void {}
}

/** Shows requests with their cookies; every request passes here. */
class ShownCookies extends UserCookies {
  readonly #show: (text: string) => void;

  constructor({ settings, trace = null }: Session, show: (text: string) => void) {
    super(settings.cookies, trace);
    this.#show = show;
  }

  override apply<Sent>(message: HttpMessage<Sent>, call: Traced): Sent {
    const sent = super.apply(message, call);
    this.#show(textOf(sent));
    return sent;
  }
}

/** HTTP/1.1 sends bytes or a string of them; HTTP/2 formats itself. */
function textOf(sent: unknown): string {
  return Buffer.isBuffer(sent) ? sent.toString("latin1") : String(sent);
}

export const userCookies: SessionKey<UserCookies> = {
  name: "cookies",
  create: (session) => {
    return session.requestSent === undefined
      ? new UserCookies(session.settings.cookies, session.trace)
      : new ShownCookies(session, (text) => session.requestSent?.(text));
  },
};
