import { describeContract } from "../testing/contract.ts";
import { absent } from "../testing/real-server.ts";
import { listenTcp } from "../testing/scripted-server.ts";
import { NatsTarget } from "./target.ts";
import { NATS_SERVER, natsProgram, startNats } from "./testing/server.ts";

const rules =
  'authorization { timeout: 60, users: [{ user: "a", password: "b", permissions: { publish: { deny: "secret" } } }] }';

describeContract({
  name: "nats",
  calls: (port) => {
    const target = new NatsTarget(`nats://a:b@127.0.0.1:${port}`);
    return {
      success: target.publish("orders", "seven"),
      refused: { call: target.publish("secret", "x"), code: "PERMISSIONS_VIOLATION" },
    };
  },
  real: {
    start: natsProgram === null ? null : () => startNats(rules),
    absent: absent(NATS_SERVER),
    users: 1_000,
  },
  hostile: {
    listen: (onCall) =>
      listenTcp((socket) => {
        socket.write("INFO {}\r\n");
        socket.once("data", () => {
          socket.write("PONG\r\n");
          socket.on("data", () => onCall(socket));
        });
      }),
    mute: () => listenTcp(() => undefined),
    resets: true,
    half: Buffer.from("PON"),
    rubbish: [
      Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n"),
      Buffer.from("PONG\n"),
      Buffer.from("MSG a 1 seven\r\n"),
      Buffer.from("MSG a 1 3\r\nabcdefg\r\n"),
      Buffer.from("MSG 3\r\nabc\r\n"),
      Buffer.from("HMSG a 1 9999 3\r\nabc\r\n"),
      Buffer.from("HMSG a 1 8 8\r\nNATS/9.9\r\n"),
      Buffer.from(`INFO ${"x".repeat(70_000)}`),
      Buffer.from("\x00\x01\x02"),
    ],
    oversize: Buffer.from("MSG a 1 70000\r\n"),
  },
});
