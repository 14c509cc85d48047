/** Entry point of HTTP/3 (experimental): `import { http3 } from "hyperscalejs/http3"`. */

import { registerProtocol } from "../protocol.ts";
import { TargetClient } from "../target/client.ts";
import type { Http3Command } from "./connection.ts";
import { type Http3Options, Http3Target } from "./target.ts";

export type { Http3Answer } from "./connection.ts";
export type {
  Http3Call,
  Http3Options,
  Http3RequestOptions,
  Http3Response,
  Http3Target,
} from "./target.ts";

export type Http3Client = TargetClient<Http3Command>;

declare module "../protocol.ts" {
  interface Clients {
    readonly http3: Http3Client;
  }
}

export const http3 = {
  /** A server: `http3.target("https://shop.test")`. */
  target: (address: string, options?: Http3Options): Http3Target =>
    new Http3Target(address, options),
};

registerProtocol({
  name: "http3",
  client: (session) => new TargetClient<Http3Command>(session),
  // https:// belongs to HTTP/1.1.
  ping: { schemes: ["h3"], call: (address, options) => new Http3Target(address, options).ping() },
});
