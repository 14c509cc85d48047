import { REDIS_SERVER, redisProgram, startRedis } from "../redis/testing/server.ts";
import { describeContract } from "../testing/contract.ts";
import { absent } from "../testing/real-server.ts";
import { listenTcp } from "../testing/scripted-server.ts";
import { TcpTarget } from "./target.ts";

describeContract({
  name: "tcp",
  // Redis accepts commands as lines, too: a server that answers lines with lines.
  calls: (port) => {
    const target = new TcpTarget(`tcp://127.0.0.1:${port}`);
    const success = target.request("PING\r\n", { answer: { until: "\r\n" } });
    return { success, refused: null };
  },
  real: {
    start:
      redisProgram === null
        ? null
        : async () => {
            const server = await startRedis();
            return { ...server, served: () => server.count("ping") };
          },
    absent: absent(REDIS_SERVER),
    users: 1_000,
  },
  hostile: {
    listen: (onCall) => listenTcp((socket) => socket.on("data", () => onCall(socket))),
    mute: null,
    resets: true,
    half: Buffer.from("+PON"),
    // Bytes after the response are malformed, but only close the connection.
    rubbish: [],
    oversize: Buffer.alloc(70_000, "x"),
  },
});
