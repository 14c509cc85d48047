/**
 * The server of examples/journeys: a small shop with jobs, files, GraphQL and a chat room, in memory. It counts every
 * request and message by its route and knows nothing of the load generator, so that a run's sent counts can be compared
 * with what arrived.
 *
 *   npx tsx test/e2e/journey-server.ts      serves until Ctrl-C, then prints its counts
 */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import http, { type IncomingMessage, type ServerResponse } from "node:http";
import https from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TLSSocket } from "node:tls";
import { fileURLToPath } from "node:url";
import { WebSocketServer } from "ws";
import { makeCertificate } from "../../src/demo/certificate.ts";

const PAGES = 5;
const ITEMS_PER_PAGE = 5;
/** A job is done when it is asked for the third time. */
const LOOKS_PER_JOB = 3;
/** Seats served at a time; all other requests get 503. */
export const SEATS = 6;
const SEAT_MS = 20;
const CERTIFIED_USERS = 3;
/** Sessions, jobs and files are forgotten beyond this, the oldest first. */
const KEPT_MAX = 10_000;

interface Call {
  readonly request: IncomingMessage;
  readonly url: URL;
  readonly body: Buffer;
  /** Value of ":id" in the route. */
  readonly id: string;
}

interface Answer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Text and bytes as they are, anything else as JSON. */
  readonly body?: unknown;
}

type Handler = (call: Call) => Answer | Promise<Answer>;

export interface JourneyServer {
  readonly url: string;
  /** Asks for a certificate of each client. */
  readonly tlsUrl: string;
  /** ca.pem, and user-N.pem with user-N.key. */
  readonly certificates: string;
  /** Users in the room: what they said before they left has arrived. */
  chatting(): number;
  /** Requests since the last `take`, by route; messages as "message /chat". */
  take(): Record<string, number>;
  close(): void;
}

export async function startJourneyServer(
  ports: readonly number[] = [0, 0],
): Promise<JourneyServer> {
  const counts = new Map<string, number>();
  const count = (route: string) => counts.set(route, (counts.get(route) ?? 0) + 1);
  const handlers = new Shop().handlers();
  const listener = (request: IncomingMessage, response: ServerResponse) =>
    void serve(handlers, count, request, response);

  const certificates = mkdtempSync(join(tmpdir(), "hyperscale-journeys-"));
  const plain = http.createServer(listener);
  const secure = https.createServer(
    { ...writeCertificates(certificates), requestCert: true, rejectUnauthorized: true },
    listener,
  );
  const chat = openChat(plain, count);
  const [port, tlsPort] = [await listen(plain, ports[0]), await listen(secure, ports[1])];
  return {
    url: `http://127.0.0.1:${port}`,
    tlsUrl: `https://127.0.0.1:${tlsPort}`,
    certificates,
    chatting: () => chat.clients.size,
    take: () => {
      const taken = Object.fromEntries(counts);
      counts.clear();
      return taken;
    },
    close: () => {
      for (const socket of chat.clients) socket.terminate();
      for (const server of [plain, secure]) {
        server.closeAllConnections();
        server.close();
      }
      rmSync(certificates, { recursive: true });
    },
  };
}

/** State shared by the handlers. */
class Shop {
  readonly #sessions = new Map<string, { user: string; items: number }>();
  readonly #jobs = new Map<string, number>();
  readonly #files = new Map<string, { bytes: Buffer; type: string }>();
  readonly #stars = new Map<string, number>();
  #last = 0;
  #seated = 0;

  handlers(): Readonly<Record<string, Handler>> {
    return {
      "GET /login": () => this.#loginPage(),
      "POST /login": (call) => this.#login(call),
      "GET /account": ({ request }) => this.#account(request),
      "POST /cart": (call) => this.#addToCart(call),
      "POST /orders": ({ request }) => this.#order(request),
      "GET /items": ({ url }) => page(Number(url.searchParams.get("page"))),
      "GET /items/:id": ({ id }) => ({ body: { id: Number(id) } }),
      "GET /search": ({ url }) => ({ body: { found: url.searchParams.get("q") } }),
      "POST /jobs": () => this.#newJob(),
      "GET /jobs/:id": ({ id }) => this.#lookAtJob(id),
      "GET /jobs/:id/result": ({ id }) =>
        this.#jobs.get(id) === 0 ? { body: { rows: 12 } } : { status: 409 },
      "POST /files": (call) => this.#storeFile(call),
      "GET /files/:id": ({ id }) => this.#sendFile(id),
      "POST /token": ({ body }) => this.#token(body),
      "GET /profile": ({ request }) => this.#profile(request),
      "POST /graphql": ({ body }) => this.#graphql(body),
      "GET /seat": () => this.#seat(),
    };
  }

  #keep<Value>(kept: Map<string, Value>, value: Value): string {
    const id = String(++this.#last);
    kept.set(id, value);
    for (const oldest of kept.keys()) {
      if (kept.size <= KEPT_MAX) break;
      kept.delete(oldest);
    }
    return id;
  }

  #loginPage(): Answer {
    const id = this.#keep(this.#sessions, { user: "", items: 0 });
    const body = `<form method="post"><input type="hidden" name="csrf" value="csrf-${id}"></form>`;
    return { headers: { "set-cookie": `session=${id}`, "content-type": "text/html" }, body };
  }

  #sessionOf(request: IncomingMessage): { user: string; items: number } | undefined {
    return this.#sessions.get(/session=(\d+)/.exec(request.headers.cookie ?? "")?.[1] ?? "");
  }

  #login({ request, body }: Call): Answer {
    const form = new URLSearchParams(body.toString());
    const session = this.#sessionOf(request);
    if (
      session === undefined ||
      !request.headers.cookie?.includes(`=${form.get("csrf")?.slice(5)}`)
    )
      return { status: 403 };
    session.user = form.get("user") ?? "";
    return { status: 303, headers: { location: "/account" } };
  }

  #account(request: IncomingMessage): Answer {
    if ("encrypted" in request.socket) {
      const { subject } = (request.socket as TLSSocket).getPeerCertificate();
      return { body: { name: subject.CN } };
    }
    const session = this.#sessionOf(request);
    return session === undefined ? { status: 401 } : { body: `Hello ${session.user}` };
  }

  /** Creates a session if there is none: a cart needs no login. */
  #addToCart({ request, body }: Call): Answer {
    const { quantity } = JSON.parse(body.toString()) as { quantity: number };
    const session = this.#sessionOf(request);
    if (session !== undefined) {
      session.items += quantity;
      return { status: 201 };
    }
    const id = this.#keep(this.#sessions, { user: "", items: quantity });
    return { status: 201, headers: { "set-cookie": `session=${id}` } };
  }

  #order(request: IncomingMessage): Answer {
    const session = this.#sessionOf(request);
    if (session === undefined || session.items === 0) return { status: 409 };
    const { items } = session;
    session.items = 0;
    return { status: 201, body: { id: ++this.#last, items } };
  }

  #newJob(): Answer {
    return { status: 202, body: { id: Number(this.#keep(this.#jobs, LOOKS_PER_JOB)) } };
  }

  #lookAtJob(id: string): Answer {
    const left = this.#jobs.get(id);
    if (left === undefined) return { status: 404 };
    this.#jobs.set(id, Math.max(left - 1, 0));
    return { body: { state: left <= 1 ? "done" : "running" } };
  }

  /** Node's own reader of forms, so that the writer under test has another judge than itself. */
  async #storeFile({ request, body }: Call): Promise<Answer> {
    const type = request.headers["content-type"] ?? "";
    const form = await new Response(new Uint8Array(body), {
      headers: { "content-type": type },
    }).formData();
    const picture = form.get("picture");
    if (!(picture instanceof File)) return { status: 400 };
    const bytes = Buffer.from(await picture.arrayBuffer());
    const id = this.#keep(this.#files, { bytes, type: picture.type });
    return {
      status: 201,
      body: { id: Number(id), bytes: bytes.length, title: form.get("title") },
    };
  }

  #sendFile(id: string): Answer {
    const found = this.#files.get(id);
    if (found === undefined) return { status: 404 };
    return { headers: { "content-type": found.type }, body: found.bytes };
  }

  #token(body: Buffer): Answer {
    const { user, password } = JSON.parse(body.toString()) as { user: string; password: string };
    if (password === "") return { status: 401 };
    return { body: { token: this.#keep(this.#sessions, { user, items: 0 }) } };
  }

  #profile(request: IncomingMessage): Answer {
    const token = request.headers.authorization?.replace("Bearer ", "") ?? "";
    const session = this.#sessions.get(token);
    return session === undefined ? { status: 401 } : { body: { user: session.user } };
  }

  /** Knows two operations by their names. */
  #graphql(body: Buffer): Answer {
    const { query, variables } = JSON.parse(body.toString()) as {
      query: string;
      variables: { id: string; stars?: number };
    };
    const { id, stars = this.#stars.get(id) ?? 0 } = variables;
    if (query.startsWith("mutation Rate")) {
      this.#stars.set(id, stars);
      return { body: { data: { rate: { id, stars } } } };
    }
    if (query.startsWith("query Product")) return { body: { data: { product: { id, stars } } } };
    return { body: { errors: [{ message: "unknown operation" }] } };
  }

  async #seat(): Promise<Answer> {
    if (this.#seated === SEATS) return { status: 503 };
    this.#seated++;
    await new Promise((resolve) => setTimeout(resolve, SEAT_MS));
    this.#seated--;
    return { body: { served: true } };
  }
}

function page(number: number): Answer {
  const first = (number - 1) * ITEMS_PER_PAGE + 1;
  const items = Array.from({ length: ITEMS_PER_PAGE }, (_, at) => ({ id: first + at }));
  return { body: { items, next: number < PAGES ? `/items?page=${number + 1}` : null } };
}

async function serve(
  handlers: Readonly<Record<string, Handler>>,
  count: (route: string) => void,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const url = new URL(request.url ?? "/", "http://here");
  const id = /\/(\d+)/.exec(url.pathname)?.[1] ?? "";
  const route = `${request.method} ${url.pathname.replace(/\/\d+/, "/:id")}`;
  count(route);
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  const handler: Handler = handlers[route] ?? (() => ({ status: 404 }));
  const answer = await handler({ request, url, body: Buffer.concat(pieces), id });
  const { status = 200, headers = {}, body = "" } = answer;
  const plain = typeof body === "string" || Buffer.isBuffer(body);
  response.writeHead(status, plain ? headers : { "content-type": "application/json", ...headers });
  response.end(plain ? body : JSON.stringify(body));
}

/** Broadcasts each message to everyone in the room. */
function openChat(server: http.Server, count: (route: string) => void): WebSocketServer {
  const chat = new WebSocketServer({ server, path: "/chat" });
  chat.on("connection", (socket) => {
    count("GET /chat");
    socket.on("message", (data) => {
      count("message /chat");
      for (const each of chat.clients) each.send(String(data));
    });
  });
  return chat;
}

/** Self-signed, each trusted by name: the server's by the clients, the users' by the server. */
function writeCertificates(folder: string): { key: string; cert: string; ca: string[] } {
  const server = makeCertificate({ hosts: ["127.0.0.1"] });
  writeFileSync(join(folder, "ca.pem"), server.cert);
  const users = Array.from({ length: CERTIFIED_USERS }, (_, user) => {
    const { cert, key } = makeCertificate({ hosts: [`user-${user}`] });
    writeFileSync(join(folder, `user-${user}.pem`), cert);
    writeFileSync(join(folder, `user-${user}.key`), key, { mode: 0o600 });
    return cert;
  });
  return { ...server, ca: users };
}

async function listen(server: http.Server | https.Server, port = 0): Promise<number> {
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const server = await startJourneyServer([8090, 8091]);
  console.log(`${server.url} and ${server.tlsUrl}, certificates in ${server.certificates}`);
  process.once("SIGINT", () => {
    console.table(server.take());
    server.close();
  });
}
