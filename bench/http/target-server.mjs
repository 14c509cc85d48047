// The same target as target.c, for machines without a C compiler: more expensive per request, which costs the
// generators nothing, because their CPU time is counted separately. With the paths of a certificate and its key it
// speaks TLS.

import { readFileSync } from "node:fs";
import net from "node:net";
import tls from "node:tls";

const hello =
  "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 11\r\n\r\nHello World";
const token =
  "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 28\r\n\r\n" +
  '{"token":"b1946ac92492d234"}';
const END = "\r\n\r\n";
let requests = 0;

function serve(socket) {
  let rest = "";
  socket.on("error", () => socket.destroy());
  socket.on("data", (data) => {
    rest += data.toString("latin1");
    for (let end = rest.indexOf(END); end >= 0; end = rest.indexOf(END)) {
      const head = rest.slice(0, end);
      const length = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0);
      const next = end + END.length + length;
      if (rest.length < next) return;
      rest = rest.slice(next);
      socket.write(answerTo(head));
    }
  });
}

function answerTo(head) {
  if (head.startsWith("GET /count ")) {
    const body = String(requests);
    return `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  }
  requests += 1;
  return head.startsWith("POST ") ? token : hello;
}

const [certificate, key] = process.argv.slice(2);
const server =
  certificate === undefined
    ? net.createServer({ noDelay: true }, serve)
    : tls.createServer({ cert: readFileSync(certificate), key: readFileSync(key) }, serve);
server.listen(0, "127.0.0.1", 4096, () => process.stdout.write(`${server.address().port}\n`));
