/** What one virtual user adds to its requests, over any version of HTTP: the cookies of one jar, and its trace. */

import type { MeasuredCall } from "../call.ts";
import type { CallSettings, Session, SessionKey, SessionState } from "../protocol.ts";
import type { TraceContext } from "../trace-context.ts";
import { CookieJar } from "./cookie-jar.ts";
import type { HttpMessage } from "./message.ts";

/** Knows the trace that its requests carry; "" for none. */
type Traced = Pick<MeasuredCall, "traceparent">;

export class UserCookies implements SessionState {
  readonly #lifetime: CallSettings["cookies"];
  readonly #trace: TraceContext | null;
  /** Null until the first cookie comes: most virtual users never have one. */
  #jar: CookieJar | null = null;

  /** There only where an iteration begins without cookies. */
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

  /** The message as this user sends it for this call. */
  apply<Sent>(message: HttpMessage<Sent>, call: Traced): Sent {
    // All requests of a call belong to one span: those of its redirects, too.
    if (this.#trace !== null && call.traceparent === "") call.traceparent = this.#trace.next();
    const { traceparent } = call;
    const jar = this.#jar;
    if (jar === null || jar.size === 0)
      return traceparent === "" ? message.sent : message.sentWith("", traceparent);
    return message.sentWith(jar.header(message.cookieOrigin, Date.now()), traceparent);
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

/** HTTP/1.1 is bytes, or a string of them; HTTP/2 shows itself. */
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
