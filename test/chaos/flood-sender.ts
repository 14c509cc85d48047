/** Pours rubbish on one port: large datagrams as fast as one process can, and streams of the same. */

import { createSocket } from "node:dgram";
import { connect } from "node:net";

const [kind = "udp", host = "127.0.0.1", port = "7946", seconds = "10"] = process.argv.slice(2);
const end = performance.now() + Number(seconds) * 1_000;
const rubbish = Buffer.alloc(60_000);
for (let i = 0; i < rubbish.length; i++) rubbish[i] = (i * 31) & 0xff;
let bytes = 0;

function report(): void {
  process.stdout.write(`${bytes}\n`);
  process.exit(0);
}

function pourDatagrams(): void {
  const socket = createSocket({ type: "udp4", sendBufferSize: 8 * 1_048_576 });
  socket.on("error", () => {});
  const round = (): void => {
    if (performance.now() > end) {
      report();
      return;
    }
    let left = 32;
    for (let i = 0; i < 32; i++) {
      // Every packet looks different, some almost right: format version 1, a data packet.
      rubbish[0] = bytes % 3 === 0 ? 1 : bytes & 0xff;
      rubbish[1] = 0;
      socket.send(rubbish, (error) => {
        if (error === null) bytes += rubbish.length;
        if (--left === 0) setImmediate(round);
      });
    }
  };
  socket.connect(Number(port), host, round);
}

function pourStreams(): void {
  if (performance.now() > end) {
    report();
    return;
  }
  const socket = connect(Number(port), host);
  const pour = (): void => {
    while (!socket.destroyed && socket.write(rubbish)) {
      bytes += rubbish.length;
      if (bytes % 6_000_000 === 0) break;
    }
  };
  socket.on("connect", pour);
  socket.on("drain", pour);
  socket.on("error", () => {});
  socket.on("close", () => setImmediate(pourStreams));
}

setTimeout(report, Number(seconds) * 1_000 + 2_000);
if (kind === "udp") pourDatagrams();
else pourStreams();
