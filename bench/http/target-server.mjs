// The same target as target.c, for machines without a C compiler: dearer per request, which costs
// the generators nothing, because their CPU time is counted apart.

import { createServer } from "node:net";

const answer = Buffer.from(
  "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 11\r\n\r\nHello World",
);
const END = "\r\n\r\n";
let requests = 0;

const server = createServer({ noDelay: true }, (socket) => {
  let rest = "";
  socket.on("error", () => socket.destroy());
  socket.on("data", (data) => {
    const text = rest + data.toString("latin1");
    if (text.startsWith("GET /count ")) {
      const body = String(requests);
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
      return;
    }
    let from = 0;
    for (let end = text.indexOf(END); end >= 0; end = text.indexOf(END, from)) {
      from = end + END.length;
      requests += 1;
      socket.write(answer);
    }
    rest = text.slice(from);
  });
});
server.listen(0, "127.0.0.1", 4096, () => process.stdout.write(`${server.address().port}\n`));
