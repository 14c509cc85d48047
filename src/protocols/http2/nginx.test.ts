/** Against a server other than Node's: nginx, which closes a connection after a number of requests. */

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasProgram, needs } from "../../../test/needs.ts";
import { makeCertificate } from "../../demo/certificate.ts";
import { runner, TestSession } from "../testing/session.ts";
import { Http2Client, http2 } from "./client.ts";

const hasNginx = hasProgram("nginx", "-v");
const REQUESTS_PER_CONNECTION = 10;

describe("nginx", needs(hasNginx, "no nginx (package nginx)"), () => {
  const folder = mkdtempSync(join(tmpdir(), "hyperscale-nginx-"));
  let nginx: ChildProcess;
  let secureUrl = "";
  let plainUrl = "";

  beforeAll(async () => {
    const [securePort, plainPort] = [await freePort(), await freePort()];
    secureUrl = `https://localhost:${securePort}/`;
    plainUrl = `http://127.0.0.1:${plainPort}/`;
    const { cert, key } = makeCertificate();
    writeFileSync(join(folder, "cert.pem"), cert);
    writeFileSync(join(folder, "key.pem"), key);
    writeFileSync(join(folder, "nginx.conf"), configuration(folder, securePort, plainPort));
    nginx = spawn("nginx", ["-p", folder, "-c", "nginx.conf", "-e", "stderr"], { stdio: "ignore" });
    await reachable(plainPort);
  });

  afterAll(() => {
    nginx.kill("SIGTERM");
    rmSync(folder, { recursive: true, force: true });
  });

  it("answers over TLS and over cleartext", async () => {
    for (const url of [secureUrl, plainUrl]) {
      const session = new TestSession({ insecure: true });
      const response = await new Http2Client(session).get(`${url}hello`);
      expect(response).toMatchObject({ ok: true, status: 200 });
      expect(response.text()).toBe("hello from nginx\n");
      expect(response.header("server")).toMatch(/^nginx/);
      session.close();
    }
  });

  it("loses no call when it closes connections after a number of requests", async () => {
    const session = new TestSession({ insecure: true });
    const run = await runner(http2.get(`${secureUrl}hello`), session);
    let connections = 0;
    for (let i = 0; i < REQUESTS_PER_CONNECTION * 4; i++) {
      const { record } = await run();
      expect(record).toMatchObject({ errorKind: null, status: 200 });
      if (record.connectMs >= 0) connections++;
    }
    expect(connections).toBeGreaterThanOrEqual(4);
    session.close();
  });

  it("loses no call when many are in flight as it closes", async () => {
    const session = new TestSession({ insecure: true });
    const client = new Http2Client(session);
    for (let round = 0; round < 5; round++) {
      const calls = Array.from({ length: 30 }, () => client.get(`${plainUrl}hello`));
      for (const response of await Promise.all(calls)) expect(response.error).toBeNull();
    }
    session.close();
  });
});

function configuration(folder: string, securePort: number, plainPort: number): string {
  return `
daemon off;
master_process off;
pid ${folder}/nginx.pid;
events {}
http {
  access_log off;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  keepalive_requests ${REQUESTS_PER_CONNECTION};
  server {
    listen 127.0.0.1:${securePort} ssl http2;
    listen 127.0.0.1:${plainPort} http2;
    ssl_certificate ${folder}/cert.pem;
    ssl_certificate_key ${folder}/key.pem;
    location /hello { return 200 "hello from nginx\\n"; }
  }
}
`;
}

async function freePort(): Promise<number> {
  const server = net.createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as net.AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function reachable(port: number): Promise<void> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const connected = await new Promise<boolean>((resolve) => {
      const socket = net.connect(port, "127.0.0.1");
      socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
      socket.once("connect", () => socket.destroy());
    });
    if (connected) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error("nginx did not start");
}
