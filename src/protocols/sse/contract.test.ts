import { describeContract } from "../testing/contract.ts";
import { SseTarget } from "./target.ts";
import { listenStreams, startEvents } from "./testing/server.ts";

const HEAD = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";

describeContract({
  name: "sse",
  calls: (port) => ({
    success: new SseTarget(`http://127.0.0.1:${port}`).events("/few"),
    // Error statuses of HTTP have their own kind; see sse.test.ts.
    refused: null,
  }),
  real: { start: () => startEvents(), absent: "", users: 1_000 },
  hostile: {
    listen: listenStreams,
    mute: null,
    resets: true,
    half: Buffer.from(`${HEAD}transfer-encoding: chunked\r\n\r\n9\r\ndata: x\n`),
    rubbish: [
      Buffer.from("hello\r\n"),
      Buffer.from("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 0\r\n\r\n"),
      Buffer.from(`${HEAD}transfer-encoding: chunked\r\n\r\nzz\r\n`),
      Buffer.from(`${HEAD}content-length: 1\r\ncontent-length: 2\r\n\r\n`),
    ],
    oversize: Buffer.concat([
      Buffer.from(`${HEAD}content-length: 100000\r\n\r\n`),
      Buffer.alloc(70_000, "x"),
    ]),
  },
});
