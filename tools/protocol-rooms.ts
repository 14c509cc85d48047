/** The protocols' part of the import table. */

import type { Room } from "./rooms.ts";

export const PROTOCOL_ROOMS = {
  "protocols/net": { path: "src/protocols/net/", imports: [] },
  /** Interface between protocols and the engine, and code that all protocols share. */
  protocols: { path: "src/protocols/", imports: ["core/base", "protocols/net"] },
  /** Parts of HTTP that its versions, GraphQL and WebSocket share. */
  "protocols/http": {
    path: "src/protocols/http/",
    imports: ["core/base", "protocols/net", "protocols"],
  },
  "protocols/http1": {
    path: "src/protocols/http1/",
    imports: ["core/base", "protocols/net", "protocols", "protocols/http"],
  },
  "protocols/http2": {
    path: "src/protocols/http2/",
    imports: ["core/base", "protocols/net", "protocols", "protocols/http"],
  },
  "protocols/graphql": {
    path: "src/protocols/graphql/",
    imports: [
      "core/base",
      "protocols",
      "protocols/http",
      "protocols/http1",
      "protocols/http2",
      "protocols/websocket",
    ],
  },
  "protocols/websocket": {
    path: "src/protocols/websocket/",
    imports: ["core/base", "protocols/net", "protocols", "protocols/http"],
  },
  /** Targets of every protocol that is imported by its own name: pools, calls, results, sockets. */
  "protocols/target": {
    path: "src/protocols/target/",
    imports: ["core/base", "protocols/net", "protocols", "protocols/http"],
  },
  /** Rides on the framing of HTTP/2. */
  "protocols/grpc": {
    path: "src/protocols/grpc/",
    imports: ["core/base", "protocols", "protocols/http2", "protocols/target"],
  },
  "protocols/sse": {
    path: "src/protocols/sse/",
    imports: ["core/base", "protocols", "protocols/http1", "protocols/target"],
  },
  "protocols/socketio": {
    path: "src/protocols/socketio/",
    imports: [
      "core/base",
      "protocols",
      "protocols/http",
      "protocols/websocket",
      "protocols/target",
    ],
  },
  /** Each of those protocols; none knows another. */
  "protocols/*": {
    path: "src/protocols/*/",
    imports: ["core/base", "protocols/net", "protocols", "protocols/target"],
  },
} satisfies Record<string, Room>;
