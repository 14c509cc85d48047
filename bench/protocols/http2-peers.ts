/** HTTP/2 in cleartext: nginx answers, h2load and node:http2 send. */

import { writeFileSync } from "node:fs";
import http2 from "node:http2";
import { join } from "node:path";
import {
  absent,
  findProgram,
  type ServerPackage,
  startServer,
} from "../../src/protocols/testing/real-server.ts";
import { CONNECTIONS, ignored, lanes, type Operation, type Side, unless } from "./comparison.ts";
import { timedProgram } from "./timed-program.ts";

const NGINX: ServerPackage = { program: "nginx", package: "nginx" };
const nginx = findProgram(NGINX);
export const NO_NGINX = unless(nginx !== null, absent(NGINX));
const H2LOAD: ServerPackage = { program: "h2load", package: "nghttp2-client" };
const h2loadProgram = findProgram(H2LOAD);
export const NO_H2LOAD = unless(h2loadProgram !== null, absent(H2LOAD));

interface Http2Server {
  readonly url: string;
  stop(): Promise<void>;
}

export async function startNginx(): Promise<Http2Server> {
  if (nginx === null) throw new Error("there is no nginx");
  const { port, stop } = await startServer({
    program: nginx,
    args: (port, folder) => {
      writeFileSync(join(folder, "nginx.conf"), configuration(port, folder));
      return ["-p", folder, "-c", "nginx.conf", "-e", "stderr"];
    },
  });
  return { url: `http://127.0.0.1:${port}/`, stop };
}

function configuration(port: number, folder: string): string {
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  return `
daemon off;
master_process off;
pid ${folder}/nginx.pid;
events {}
http {
  access_log off;
  ${temporary.map((name) => `${name}_temp_path ${folder}/${name};`).join("\n  ")}
  # Connections are to last: opening them is not what is measured.
  keepalive_requests 1000000000;
  keepalive_timeout 1h;
  server {
    listen 127.0.0.1:${port} http2;
    location / { return 200 "hello from nginx\\n"; }
  }
}
`;
}

export function h2load(url: string, streams: number): Side {
  if (h2loadProgram === null) throw new Error("there is no h2load");
  return timedProgram(
    h2loadProgram,
    (operations) => [
      ...["-n", `${operations}`, "-c", `${CONNECTIONS}`, "-m", `${streams}`, "-t", "1", url],
    ],
    (output, operations) => output.includes(` ${operations} succeeded`),
  );
}

/** Concurrent streams on each connection. */
export async function nodeHttp2(url: string, streams: number): Promise<Side> {
  const sessions = Array.from({ length: CONNECTIONS }, () => {
    const session = http2.connect(url);
    session.on("error", ignored);
    return session;
  });
  let opened = 0;
  return lanes(async () => {
    const session = sessions[opened++ % CONNECTIONS];
    if (session === undefined) throw new Error("there are no connections");
    return nodeGet(session);
  }, CONNECTIONS * streams);
}

function nodeGet(session: http2.ClientHttp2Session): Operation {
  return () =>
    new Promise<void>((resolve, reject) => {
      const stream = session.request({ ":path": "/" });
      stream.on("error", reject);
      stream.on("end", resolve);
      stream.resume();
    });
}
