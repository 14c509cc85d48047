/** A small shop for a browser, and a scripted server. */

import http from "node:http";
import https from "node:https";
import type { AddressInfo } from "node:net";
import type { CountingServer } from "../../testing/contract.ts";
import { listenTcp, type Peer, type ScriptedServer } from "../../testing/scripted-server.ts";

/** Long enough to be reported: browsers omit interactions below 16 ms. */
const BUSY_MS = 50;

const PAGES: Readonly<Record<string, string>> = {
  "/": `<h1>The shop</h1>
    <form action="/found"><input name="q"><select name="size"><option>S<option>L</select>
    <button>Search</button></form>
    <button id="busy">Buy</button><p class="twice">a</p><p class="twice">b</p>
    <script>
      document.cookie = "visits=" + (Number(/visits=(\\d+)/.exec(document.cookie)?.[1] ?? 0) + 1);
      document.title = document.cookie;
      busy.onclick = () => {
        for (const from = performance.now(); performance.now() - from < ${BUSY_MS}; );
        busy.textContent = "Bought";
      };
    </script>`,
  "/shifting": `<h1>Moves</h1><script>
      requestAnimationFrame(() => setTimeout(() => {
        const banner = document.createElement("div");
        banner.style.height = "300px";
        document.body.prepend(banner);
      }, 50));
    </script>`,
  "/picture": `<h1>A picture</h1><img src="/logo.svg"><img src="/missing.png">`,
};

export interface Site extends CountingServer {
  readonly url: string;
  /** Number of requests for a path, ignoring the query. */
  count(path: string): number;
  /** Address of the last request for this path. */
  last(path: string): string;
}

/** Counts requests for its first page as served. */
export async function startSite(tls?: https.ServerOptions): Promise<Site> {
  const counts = new Map<string, number>();
  const addresses = new Map<string, string>();
  const serve: http.RequestListener = (request, response) => {
    const { pathname } = new URL(request.url ?? "/", "http://site");
    counts.set(pathname, (counts.get(pathname) ?? 0) + 1);
    addresses.set(pathname, request.url ?? "");
    const { body, headers, status } = answerTo(pathname, request);
    response.writeHead(status, { "cache-control": "no-store", ...headers }).end(body);
  };
  const server = tls === undefined ? http.createServer(serve) : https.createServer(tls, serve);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `${tls === undefined ? "http" : "https"}://127.0.0.1:${port}`,
    count: (path) => counts.get(path) ?? 0,
    last: (path) => addresses.get(path) ?? "",
    served: async () => counts.get("/") ?? 0,
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

interface SiteAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

function answerTo(path: string, request: http.IncomingMessage): SiteAnswer {
  const html = { "content-type": "text/html; charset=utf-8" };
  const page = PAGES[path];
  if (page !== undefined) return { status: 200, headers: html, body: page };
  if (path === "/moved") return { status: 302, headers: { location: "/" }, body: "" };
  if (path === "/logo.svg")
    return {
      status: 200,
      headers: { "content-type": "image/svg+xml" },
      body: `<svg xmlns="http://www.w3.org/2000/svg" width="200" height="200"/>`,
    };
  if (path === "/found")
    return {
      status: 200,
      headers: html,
      body: `<h1>Found ${request.headers["x-shop"] ?? ""}</h1>`,
    };
  return { status: 404, headers: html, body: "<h1>Nothing here</h1>" };
}

/** Invokes the callback for each request. */
export function listenPages(onCall: (peer: Peer) => void): Promise<ScriptedServer> {
  return listenTcp((socket) => socket.on("data", () => onCall(socket)));
}
