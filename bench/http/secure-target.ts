/** The target over TLS: nginx where available, else the target in Node. */

import { writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { makeCertificate } from "../../src/demo/certificate.ts";
import { isOnPath, Measured, pinned, sleep } from "./processes.ts";
import { startNodeTarget, type Target, type TlsFiles, textOf } from "./target.ts";
import { temporaryFolder } from "./temporary.ts";

export async function startSecureTarget(core: number | undefined): Promise<Target> {
  const folder = temporaryFolder();
  const certificate = join(folder, "certificate.pem");
  const key = join(folder, "key.pem");
  const made = makeCertificate();
  writeFileSync(certificate, made.cert);
  writeFileSync(key, made.key);
  return isOnPath("nginx")
    ? startNginx(folder, { certificate, key }, core)
    : startNodeTarget(core, { certificate, key });
}

async function startNginx(
  folder: string,
  files: TlsFiles,
  core: number | undefined,
): Promise<Target> {
  const [port, countPort] = [await freePort(), await freePort()];
  writeFileSync(join(folder, "nginx.conf"), configuration(folder, files, port, countPort));
  const server = new Measured({
    file: "nginx",
    args: ["-p", folder, "-c", "nginx.conf", "-e", "stderr"],
    ...pinned(core),
  });
  const status = `http://127.0.0.1:${countPort}/`;
  await listening(status, server);
  // nginx counts every request: subtract those for the count itself.
  let asked = 0;
  const count = async (): Promise<number> => {
    const text = await textOf(status);
    return Number(/requests\s+\d+ \d+ (\d+)/.exec(text)?.[1]) - ++asked;
  };
  const url = `https://127.0.0.1:${port}/`;
  return { url, made: "nginx", count, close: () => server.kill() };
}

async function listening(url: string, server: Measured): Promise<void> {
  while (server.ended === null) {
    try {
      await textOf(url);
      return;
    } catch {
      await sleep(20);
    }
  }
  throw new Error(`nginx did not start: ${server.ended}`);
}

/** One process, an answer of the same 11 bytes, and connections that stay open. */
function configuration(folder: string, files: TlsFiles, port: number, countPort: number): string {
  return `
daemon off;
master_process off;
pid ${folder}/nginx.pid;
events { worker_connections 1024; }
http {
  access_log off;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  default_type text/plain;
  keepalive_requests 1000000000;
  keepalive_timeout 3600s;
  server {
    listen 127.0.0.1:${port} ssl;
    ssl_certificate ${files.certificate};
    ssl_certificate_key ${files.key};
    location / { return 200 "Hello World"; }
  }
  server {
    listen 127.0.0.1:${countPort};
    location / { stub_status; }
  }
}
`;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === "string") throw new Error("no free port");
  return address.port;
}
