/** A small HTTP proxy that records its requests: CONNECT, and requests in absolute form. */

import http from "node:http";
import net from "node:net";

interface TestProxy {
  readonly port: number;
  readonly url: string;
  /** "CONNECT shop.test:443" or "GET http://shop.test/", in order. */
  readonly requests: readonly string[];
  /** Values of Proxy-Authorization, in order. */
  readonly credentials: readonly (string | undefined)[];
  close(): void;
}

interface ProxyRules {
  /** Port that all connections go to, whatever the host; by default the requested one. */
  readonly to?: number;
  /** Answers with 407 unless the credentials are these. */
  readonly credentials?: string;
  /** Refuses CONNECT with this status. */
  readonly refuse?: number;
}

export async function startProxy(rules: ProxyRules = {}): Promise<TestProxy> {
  const requests: string[] = [];
  const credentials: (string | undefined)[] = [];
  const sockets = new Set<net.Socket>();
  const note = (request: http.IncomingMessage): number => {
    requests.push(`${request.method} ${request.url}`);
    const given = request.headers["proxy-authorization"];
    credentials.push(given);
    if (rules.refuse !== undefined) return rules.refuse;
    return rules.credentials === undefined || given === rules.credentials ? 200 : 407;
  };
  const server = http.createServer((request, response) => {
    const status = note(request);
    const url = new URL(request.url ?? "");
    if (status !== 200) {
      response.writeHead(status).end();
      return;
    }
    const { ["proxy-authorization"]: _, ...headers } = request.headers;
    const onward = http.request(
      { host: "127.0.0.1", port: rules.to ?? url.port, path: url.pathname, headers },
      (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
      },
    );
    request.pipe(onward);
  });
  server.on("connect", (request: http.IncomingMessage, client: net.Socket) => {
    const status = note(request);
    sockets.add(client);
    client.on("error", () => client.destroy());
    if (status !== 200) {
      client.end(`HTTP/1.1 ${status} No\r\n\r\n`);
      return;
    }
    const port = rules.to ?? Number(/:(\d+)$/.exec(request.url ?? "")?.[1]);
    const onward = net.connect(port, "127.0.0.1", () => {
      client.write("HTTP/1.1 200 Connection established\r\n\r\n");
      client.pipe(onward);
      onward.pipe(client);
    });
    sockets.add(onward);
    onward.on("error", () => client.destroy());
    client.on("close", () => onward.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as net.AddressInfo;
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    requests,
    credentials,
    close: () => {
      server.close();
      server.closeAllConnections();
      for (const socket of sockets) socket.destroy();
    },
  };
}
