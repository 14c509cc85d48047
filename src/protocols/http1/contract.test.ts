import { describeContract } from "../testing/contract.ts";
import { startCounting } from "../testing/counting-server.ts";
import { listenTcp } from "../testing/scripted-server.ts";
import { http } from "./client.ts";

const HEAD = "HTTP/1.1 200 OK\r\n";

describeContract({
  name: "http",
  calls: (port) => ({
    success: http.get(`http://127.0.0.1:${port}/`),
    // Error statuses of HTTP have their own kind; see client.test.ts.
    refused: null,
  }),
  real: { start: startCounting, absent: "", users: 1_000 },
  hostile: {
    listen: (onCall) => listenTcp((socket) => socket.on("data", () => onCall(socket))),
    mute: null,
    resets: true,
    half: Buffer.from(`${HEAD}content-length: 10\r\n\r\nhalf`),
    rubbish: [
      Buffer.from("hello\r\n"),
      Buffer.from("HTTP/1.1 2000 OK\r\n\r\n"),
      Buffer.from(`${HEAD}transfer-encoding: chunked\r\n\r\nzz\r\n`),
      Buffer.from(`${HEAD}content-length: 1\r\ncontent-length: 2\r\n\r\n`),
      Buffer.from(`${HEAD}content-length: -1\r\n\r\n`),
    ],
    // A head: bodies that are not kept may have any length.
    oversize: Buffer.from(`${HEAD}x-long: ${"x".repeat(70_000)}`),
  },
});
