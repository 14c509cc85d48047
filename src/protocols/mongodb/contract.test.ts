import { serialize } from "bson";
import { describeContract } from "../testing/contract.ts";
import { listenTcp } from "../testing/scripted-server.ts";
import { encodeMessage } from "./message.ts";
import { MongodbTarget } from "./target.ts";
import { listenCommands, startMongodb } from "./testing/server.ts";

const answer = (document: object, length?: number): Buffer => {
  const message = encodeMessage(serialize(document), 1);
  // The second message of a connection is the first after hello.
  message.writeInt32LE(2, 8);
  if (length !== undefined) message.writeInt32LE(length, 0);
  return message;
};

const stray = answer({ ok: 1 });
stray.writeInt32LE(77, 8);
const compressed = answer({ ok: 1 });
compressed.writeInt32LE(2012, 12);
const malformed = answer({ ok: 1 });
malformed.writeUInt8(99, 25);

describeContract({
  name: "mongodb",
  calls: (port) => {
    const target = new MongodbTarget(`mongodb://127.0.0.1:${port}/shop`);
    return {
      success: target.ping(),
      refused: { call: target.command({ nonsense: 1 }), code: "CommandNotFound" },
    };
  },
  real: { start: () => startMongodb(), absent: "", users: 1_000 },
  hostile: {
    listen: listenCommands,
    mute: () => listenTcp(() => undefined),
    resets: true,
    half: answer({ ok: 1 }).subarray(0, 30),
    rubbish: [stray, compressed, malformed, Buffer.alloc(64, 7), answer({ ok: 1 }, 3)],
    oversize: answer({ ok: 1 }, 1_000_000),
  },
});
