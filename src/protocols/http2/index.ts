/** Entry point of HTTP/2. */

import { registerProtocol } from "../protocol.ts";
import { Http2Client } from "./client.ts";

export { Http2Client, Http2Request, http2 } from "./client.ts";
export { Http2Response } from "./response.ts";

declare module "../protocol.ts" {
  interface Clients {
    readonly http2: Http2Client;
  }
}

registerProtocol({ name: "http2", client: (session) => new Http2Client(session) });
