/** Handlers of the demo target's endpoints. The list with their paths is in `endpoints.ts`. */

import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { gzipSync } from "node:zlib";
import type { Exchange } from "./exchange.ts";
import { answerGraphql } from "./graphql.ts";
import { COOKIES_SET_MAX, MADE_BYTES_MAX, REDIRECTS_MAX, WAIT_MS_MAX } from "./limits.ts";

const CHUNK_BYTES = 16 * 1024;
const filler = Buffer.alloc(CHUNK_BYTES, "hyperscale ");

const NAMES = ["Ada", "Grace", "Edsger", "Barbara", "Donald", "Radia", "Leslie", "Margaret"];
const users = Array.from({ length: 100 }, (_, index) => ({
  id: index + 1,
  name: `${NAMES[index % NAMES.length]} ${index + 1}`,
  email: `user${index + 1}@example.com`,
}));
const allUsers = Buffer.from(`${JSON.stringify({ total: users.length, users })}\n`);
const home = Buffer.from("Hyperscale!\n");
const gzipped = gzipSync(JSON.stringify({ gzipped: true, text: "hyperscale ".repeat(200) }));

export function answerHome(exchange: Exchange): void {
  exchange.send(200, "text/plain", home);
}

export function answerJson(exchange: Exchange): void {
  exchange.json(200, { hello: "world", at: Date.now(), items: [1, 2, 3] });
}

export function answerUsers(exchange: Exchange): void {
  if (!mayEnter(exchange)) return;
  exchange.send(200, "application/json", allUsers);
}

export function answerUser(exchange: Exchange): void {
  if (!mayEnter(exchange)) return;
  const user = users[Number(exchange.parameter) - 1];
  if (user === undefined) exchange.refuse(404, `no user ${exchange.parameter}`);
  else exchange.json(200, user);
}

// Tokens are checked by signature, so that the target keeps nothing per login.
const secret = randomBytes(32);

function signature(user: string): Buffer {
  return createHmac("sha256", secret).update(user).digest();
}

export async function answerLogin(exchange: Exchange): Promise<void> {
  const body = await jsonBody(exchange);
  if (body === refused) return;
  const { user, password } = Object(body);
  if (typeof user !== "string" || user === "" || user.length > 200) {
    exchange.refuse(400, 'log in with JSON such as {"user":"ada"}');
  } else if (password === "wrong") {
    exchange.refuse(401, "wrong password");
  } else {
    const name = Buffer.from(user).toString("base64url");
    exchange.json(200, { user, token: `${name}.${signature(user).toString("base64url")}` });
  }
}

function mayEnter(exchange: Exchange): boolean {
  const [, name, sign] =
    /^Bearer ([\w-]+)\.([\w-]+)$/i.exec(exchange.request.headers.authorization ?? "") ?? [];
  if (name !== undefined && sign !== undefined) {
    const given = Buffer.from(sign, "base64url");
    const expected = signature(Buffer.from(name, "base64url").toString());
    if (given.length === expected.length && timingSafeEqual(given, expected)) return true;
  }
  exchange.response.setHeader("www-authenticate", "Bearer");
  exchange.refuse(401, "POST /login first and send its token as authorization: Bearer TOKEN");
  return false;
}

export function answerSlow(exchange: Exchange): void {
  const ms = exchange.number("ms", 200, WAIT_MS_MAX);
  const timer = setTimeout(() => exchange.json(200, { waitedMs: ms }), ms);
  exchange.response.on("close", () => clearTimeout(timer));
}

const MILLIONTHS = 1_000_000;
let owedFailures = 0;

/** Fails evenly and exactly: at rate 0.1 every tenth answer, so that tests can rely on it. */
export function answerFail(exchange: Exchange): void {
  owedFailures += Math.round(exchange.number("rate", 1, 1) * MILLIONTHS);
  const failing = owedFailures >= MILLIONTHS;
  if (failing) owedFailures -= MILLIONTHS;
  const status = Math.trunc(exchange.number("status", 500, 599));
  if (!failing) exchange.json(200, { failed: false });
  else if (status === 204 || status === 304) exchange.response.writeHead(status).end();
  else exchange.refuse(status >= 200 ? status : 500, "failing as asked");
}

export async function answerEcho(exchange: Exchange): Promise<void> {
  const body = await exchange.body();
  if (body === null) {
    exchange.refuse(413, "the body is larger than this target reads");
    return;
  }
  const { method, headers } = exchange.request;
  const query = Object.fromEntries(exchange.query);
  exchange.json(200, { method, path: exchange.path, query, headers, body: body.toString() });
}

export function answerBytes(exchange: Exchange): void {
  const size = exchange.count(MADE_BYTES_MAX);
  if (size === null) {
    exchange.refuse(400, `ask for /bytes/0 … /bytes/${MADE_BYTES_MAX}`);
    return;
  }
  const type = { "content-type": "application/octet-stream", "content-length": size };
  exchange.response.writeHead(200, type);
  pour(exchange, size);
}

export function answerChunked(exchange: Exchange): void {
  const size = exchange.count(MADE_BYTES_MAX);
  if (size === null) {
    exchange.refuse(400, `ask for /chunked/0 … /chunked/${MADE_BYTES_MAX}`);
    return;
  }
  exchange.response.writeHead(200, {
    "content-type": "application/octet-stream",
    "transfer-encoding": "chunked",
    trailer: "x-bytes",
  });
  exchange.response.addTrailers({ "x-bytes": String(size) });
  pour(exchange, size);
}

/** Writes `size` filler bytes at the speed the client reads them. */
function pour({ response }: Exchange, size: number): void {
  let left = size;
  const more = (): void => {
    while (left > 0) {
      const part = left >= CHUNK_BYTES ? filler : filler.subarray(0, left);
      left -= part.length;
      if (!response.write(part) && left > 0) {
        response.once("drain", more);
        return;
      }
    }
    response.end();
  };
  more();
}

export function answerRedirect(exchange: Exchange): void {
  const left = exchange.count(REDIRECTS_MAX);
  if (left === null) exchange.refuse(400, `ask for /redirect/0 … /redirect/${REDIRECTS_MAX}`);
  else if (left === 0) exchange.json(200, { redirected: true });
  else {
    exchange.response.writeHead(302, { location: `/redirect/${left - 1}`, "content-length": 0 });
    exchange.response.end();
  }
}

export function answerSetCookies(exchange: Exchange): void {
  const cookies = [...exchange.query].slice(0, COOKIES_SET_MAX);
  const lines = cookies.map(
    ([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}; Path=/`,
  );
  if (lines.length > 0) exchange.response.setHeader("set-cookie", lines);
  exchange.json(200, { set: Object.fromEntries(cookies) });
}

export function answerCookies(exchange: Exchange): void {
  const pairs = (exchange.request.headers.cookie ?? "").split("; ").filter((pair) => pair !== "");
  const cookies = pairs.map((pair) => {
    const [name = "", ...value] = pair.split("=");
    return [name, value.join("=")];
  });
  exchange.json(200, { cookies: Object.fromEntries(cookies) });
}

export function answerGzip(exchange: Exchange): void {
  exchange.response.setHeader("content-encoding", "gzip");
  exchange.send(200, "application/json", gzipped);
}

/** A body of `bytes` that takes `ms`, one piece at a time. */
export function answerDrip(exchange: Exchange): void {
  const { response } = exchange;
  const bytes = Math.trunc(exchange.number("bytes", 10, MADE_BYTES_MAX));
  const ms = exchange.number("ms", 1_000, WAIT_MS_MAX);
  response.writeHead(200, { "content-type": "text/plain", "content-length": bytes });
  if (bytes === 0) {
    response.end();
    return;
  }
  response.flushHeaders();
  const pieces = Math.max(1, Math.min(bytes, Math.ceil(ms / 10)));
  let sent = 0;
  let piece = 0;
  const timer = setInterval(() => {
    piece += 1;
    const upTo = Math.floor((bytes * piece) / pieces);
    response.write(Buffer.alloc(upTo - sent, "."));
    sent = upTo;
    if (piece === pieces) {
      clearInterval(timer);
      response.end();
    }
  }, ms / pieces);
  response.on("close", () => clearInterval(timer));
}

export function answerReset({ request }: Exchange): void {
  request.socket.resetAndDestroy();
}

export function answerCloseMidBody({ request, response }: Exchange): void {
  response.writeHead(200, { "content-type": "text/plain", "content-length": 1_000 });
  response.write("the rest of these thousand bytes never comes", () => request.socket.end());
}

export async function answerGraphqlRequest(exchange: Exchange): Promise<void> {
  const body = exchange.request.method === "GET" ? fromQuery(exchange) : await jsonBody(exchange);
  if (body === refused) return;
  exchange.json(
    200,
    answerGraphql(body, (id) => users[id - 1]),
  );
}

function fromQuery({ query }: Exchange): unknown {
  const variables = query.get("variables");
  return { query: query.get("query"), variables: variables === null ? {} : parsed(variables) };
}

const refused = Symbol("refused");

async function jsonBody(exchange: Exchange): Promise<unknown> {
  const body = await exchange.body();
  if (body === null) {
    exchange.refuse(413, "the body is larger than this target reads");
    return refused;
  }
  return parsed(body.toString());
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Not JSON: the handler says what it expected.
    return undefined;
  }
}
