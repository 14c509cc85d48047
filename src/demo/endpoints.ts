/**
 * The demo target's endpoints in one table: the router, `hyperscale demo-target` and its test, and
 * docs/guide/demo-target.md all show this list.
 */

import type { Exchange } from "./exchange.ts";
import {
  answerBytes,
  answerChunked,
  answerCloseMidBody,
  answerCookies,
  answerDrip,
  answerEcho,
  answerFail,
  answerGraphqlRequest,
  answerGzip,
  answerHome,
  answerJson,
  answerLogin,
  answerRedirect,
  answerReset,
  answerSetCookies,
  answerSlow,
  answerUser,
  answerUsers,
} from "./handlers.ts";

export type Handler = (exchange: Exchange) => void | Promise<void>;

export interface Endpoint {
  /** At most one parameter, as the last segment. */
  readonly path: string;
  readonly query?: string;
  readonly methods: readonly string[];
  readonly does: string;
}

interface HandledEndpoint extends Endpoint {
  readonly handler: Handler;
}

const GET: readonly string[] = ["GET", "HEAD"];
const POST: readonly string[] = ["POST"];
const ANY_METHOD: readonly string[] = [];

export const handledEndpoints: readonly HandledEndpoint[] = [
  { path: "/", methods: GET, does: "a small fast answer", handler: answerHome },
  { path: "/json", methods: GET, does: "a small JSON object", handler: answerJson },
  {
    path: "/login",
    methods: POST,
    does: 'takes {"user":"ada"}, gives a token',
    handler: answerLogin,
  },
  {
    path: "/users",
    methods: GET,
    does: "100 users; needs the bearer token",
    handler: answerUsers,
  },
  {
    path: "/users/:id",
    methods: GET,
    does: "one user, 1 … 100; needs the bearer token",
    handler: answerUser,
  },
  {
    path: "/slow",
    query: "ms=200",
    methods: ANY_METHOD,
    does: "answers after ms",
    handler: answerSlow,
  },
  {
    path: "/fail",
    query: "rate=1&status=500",
    methods: ANY_METHOD,
    does: "fails this share of requests, evenly",
    handler: answerFail,
  },
  {
    path: "/echo",
    methods: ANY_METHOD,
    does: "method, query, headers and body as JSON",
    handler: answerEcho,
  },
  {
    path: "/bytes/:n",
    methods: GET,
    does: "n bytes with content-length",
    handler: answerBytes,
  },
  {
    path: "/chunked/:n",
    methods: GET,
    does: "n bytes in chunks, with a trailer",
    handler: answerChunked,
  },
  {
    path: "/drip",
    query: "ms=1000&bytes=10",
    methods: GET,
    does: "a body that takes ms to arrive",
    handler: answerDrip,
  },
  { path: "/gzip", methods: GET, does: "JSON, compressed", handler: answerGzip },
  {
    path: "/redirect/:n",
    methods: ANY_METHOD,
    does: "n redirects, then 200",
    handler: answerRedirect,
  },
  {
    path: "/cookies/set",
    query: "name=value",
    methods: GET,
    does: "sets the query as cookies",
    handler: answerSetCookies,
  },
  { path: "/cookies", methods: GET, does: "the cookies it was sent", handler: answerCookies },
  { path: "/reset", methods: ANY_METHOD, does: "resets the connection", handler: answerReset },
  {
    path: "/close-mid-body",
    methods: ANY_METHOD,
    does: "closes after 44 of 1000 bytes",
    handler: answerCloseMidBody,
  },
  {
    path: "/graphql",
    methods: ["GET", "POST"],
    does: "query { user(id: 1) { id name } }",
    handler: answerGraphqlRequest,
  },
];

/** Endpoints that belong to the server itself. */
export const serverEndpoints: readonly Endpoint[] = [
  {
    path: "/stall",
    query: "ms=1000",
    methods: ANY_METHOD,
    does: "stalls ALL answers; also after=, every=; ms=0 stops",
  },
  { path: "/stats", methods: ANY_METHOD, does: "requests so far by path; reset=1 starts over" },
  { path: "/ws", methods: ["GET"], does: "WebSocket: sends every message back" },
];

export const endpoints: readonly Endpoint[] = [...handledEndpoints, ...serverEndpoints];
