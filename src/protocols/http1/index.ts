/** Entry point of HTTP/1.1. */

import { registerProtocol } from "../protocol.ts";
import { HttpClient } from "./client.ts";

export { HttpClient, HttpRequest, http } from "./client.ts";

declare module "../protocol.ts" {
  interface Clients {
    readonly http: HttpClient;
  }
}

registerProtocol({ name: "http", client: (session) => new HttpClient(session) });
