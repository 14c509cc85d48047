import { describeContract } from "../testing/contract.ts";
import { absent } from "../testing/real-server.ts";
import { listenTcp } from "../testing/scripted-server.ts";
import { RedisTarget } from "./target.ts";
import { REDIS_SERVER, redisProgram, startRedis } from "./testing/server.ts";

describeContract({
  name: "redis",
  calls: (port) => {
    const target = new RedisTarget(`redis://127.0.0.1:${port}`);
    return {
      success: target.get("nothing"),
      refused: { call: target.command("LPOP"), code: "ERR" },
    };
  },
  real: {
    start: redisProgram === null ? null : () => startRedis(),
    absent: absent(REDIS_SERVER),
    users: 1_000,
  },
  hostile: {
    listen: (onCall) => listenTcp((socket) => socket.on("data", () => onCall(socket))),
    mute: null,
    resets: true,
    half: Buffer.from("$100\r\nabc"),
    rubbish: [
      Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n"),
      Buffer.from("$5\r\nabcdefghij\r\n"),
      Buffer.from("$-7\r\n"),
      Buffer.from("$99999999999999999999\r\n"),
      Buffer.from(":twelve\r\n"),
      Buffer.from("+OK\n"),
      Buffer.from("*3000000\r\n"),
      Buffer.from("*1\r\n".repeat(100)),
      Buffer.from("\x00\x01\x02"),
      Buffer.from(`+${"x".repeat(70_000)}`),
    ],
    oversize: Buffer.from("$70000\r\n"),
  },
});
