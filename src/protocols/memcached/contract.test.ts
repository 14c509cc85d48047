import { describeContract } from "../testing/contract.ts";
import { absent } from "../testing/real-server.ts";
import { listenTcp } from "../testing/scripted-server.ts";
import { MemcachedTarget } from "./target.ts";
import { MEMCACHED_SERVER, memcachedProgram, startMemcached } from "./testing/server.ts";

describeContract({
  name: "memcached",
  calls: (port) => {
    const target = new MemcachedTarget(`memcached://127.0.0.1:${port}`);
    return {
      success: target.get("nothing"),
      refused: { call: target.incr("k", Number.NaN), code: "CLIENT_ERROR" },
    };
  },
  real: {
    start: memcachedProgram === null ? null : startMemcached,
    absent: absent(MEMCACHED_SERVER),
    users: 1_000,
  },
  hostile: {
    listen: (onCall) => listenTcp((socket) => socket.on("data", () => onCall(socket))),
    mute: null,
    resets: true,
    half: Buffer.from("VALUE nothing 0 100\r\nabc"),
    rubbish: [
      Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n"),
      Buffer.from("END\n"),
      Buffer.from("VALUE nothing 0 seven\r\n"),
      Buffer.from("VALUE nothing 0 3\r\nabcdefg\r\nEND\r\n"),
      Buffer.alloc(3_000, "x"),
    ],
    oversize: Buffer.from("VALUE nothing 0 70000\r\n"),
  },
});
