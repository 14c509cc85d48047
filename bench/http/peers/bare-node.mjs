// The floor of the runtime: sockets of Node that write the same bytes again as soon as an answer has arrived. Measures
// nothing, and checks only the first and the last byte of an answer.

import { connect } from "node:net";

const [url, connections] = process.argv.slice(2);
const { host, hostname, pathname, port } = new URL(url);
const request = Buffer.from(`GET ${pathname} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
const buffer = Buffer.allocUnsafeSlow(64 * 1024);
const [FIRST, LAST] = [..."Hd"].map((letter) => letter.charCodeAt(0));

for (let index = 0; index < Number(connections); index++) {
  const callback = (count) => {
    if (buffer[0] !== FIRST || buffer[count - 1] !== LAST) throw new Error("no whole answer");
    socket.write(request);
    return true;
  };
  const onread = { buffer, callback };
  const socket = connect({ host: hostname, port: Number(port), noDelay: true, onread });
  socket.on("connect", () => socket.write(request));
}
