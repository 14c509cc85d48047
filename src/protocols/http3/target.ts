/**
 * \n An HTTP/3 server, as users write it.
 *
 *   const shop = http3.target("https://shop.test");
 *   const home = await step("home", shop.get("/"));
 *   await step("order", shop.post("/orders", { body: { item: 7 } }));
 */

import type { Duration } from "../../core/base/duration.ts";
import { DescribedCall } from "../target/described-call.ts";
import { type Payload, payloadBytes } from "../target/payload.ts";
import type { TargetResult } from "../target/result.ts";
import { checkNames, Target, type TargetProtocol } from "../target/target.ts";
import { type Http3Answer, type Http3Command, Http3Connection } from "./connection.ts";
import { http3Driver } from "./driver.ts";
import { STREAMS_PER_CONNECTION_MAX } from "./limits.ts";

export interface Http3Options {
  /** Timeout of each call; the workflow's `timeout` by default. */
  readonly timeout?: Duration;
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Authorities to trust instead of the system's, as PEM. */
  readonly ca?: string | Buffer | readonly (string | Buffer)[];
  /** Accepts any certificate. */
  readonly insecure?: boolean;
  /** Overrides the addresses of hosts: { "shop.test": "127.0.0.1:8443" }. */
  readonly hosts?: Readonly<Record<string, string>>;
}

export interface Http3RequestOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Payload;
  /** Statuses that count as success; below 400 by default. */
  readonly expect?: number | readonly number[];
  readonly timeout?: Duration;
}

export type Http3Response = TargetResult<Http3Answer>;
export type Http3Call = DescribedCall<Http3Command, Http3Answer>;

const HTTP3: TargetProtocol = {
  name: "http3",
  schemes: { https: { port: 443, secure: true }, h3: { port: 443, secure: true } },
  optionNames: ["headers"],
  callsPerConnectionMax: STREAMS_PER_CONNECTION_MAX,
  // UDP does not report that nothing listens.
  listens: false,
  load: () => http3Driver.load(),
};

const OPTION_NAMES = ["timeout", "headers", "ca", "insecure", "hosts"];
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

export class Http3Target {
  readonly #target: Target<Http3Command>;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(address: string, options: Http3Options = {}) {
    checkNames("http3.target", options, OPTION_NAMES);
    const { ca, ...others } = options;
    const trust = { ca: ca === undefined ? null : [ca].flat() };
    this.#target = new Target(
      HTTP3,
      address,
      others,
      (host, now) => new Http3Connection(host, trust, now),
    );
    this.#headers = lowered(options.headers ?? {});
  }

  get(path: string, options?: Omit<Http3RequestOptions, "body">): Http3Call {
    return this.request("GET", path, options);
  }

  post(path: string, options?: Http3RequestOptions): Http3Call {
    return this.request("POST", path, options);
  }

  /** Encoded once, when the request is described. */
  request(method: string, path: string, options: Http3RequestOptions = {}): Http3Call {
    checkNames("request", options, ["headers", "body", "expect", "timeout"]);
    const { body, expect = [], headers = {}, timeout } = options;
    if (!TOKEN.test(method)) throw new TypeError(`${JSON.stringify(method)} is not a method`);
    if (typeof path !== "string" || !/^\/[!-~]*$/.test(path))
      throw new TypeError(
        `${JSON.stringify(path)} is not a path: it begins with "/", without spaces`,
      );
    const content = body === undefined ? null : payloadBytes(body);
    const plain = typeof body === "string" || body instanceof Uint8Array;
    const fields = {
      ":method": method,
      ":scheme": "https",
      ":authority": this.#target.url.host,
      ":path": path,
      ...(content === null ? {} : { "content-length": `${content.length}` }),
      ...(content === null || plain ? {} : { "content-type": "application/json" }),
      ...this.#headers,
      ...lowered(headers),
    };
    return new DescribedCall(this.#target, {
      command: { headers: fields, body: content, expect: [expect].flat() },
      title: `${method} ${path.split("?", 1)[0]}`,
      shown: `${method} ${path}`,
      timeout,
      decode: (answer) => answer as Http3Answer,
    });
  }

  /** HEAD request to the address; any status counts as success. */
  ping(): DescribedCall<Http3Command, string> {
    const { command } = this.request("HEAD", this.#target.url.pathname || "/");
    const decode = (answer: unknown): string =>
      String((answer as Http3Answer).headers["server"] ?? "");
    return new DescribedCall(this.#target, { command, title: "HEAD", decode });
  }
}

/** Converts names to lower case and rejects values that would split the message. */
function lowered(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => {
      if (!TOKEN.test(name) || /[\r\n\0]/.test(String(value)))
        throw new TypeError(`the header ${JSON.stringify(name)} cannot be sent`);
      return [name.toLowerCase(), String(value)];
    }),
  );
}
