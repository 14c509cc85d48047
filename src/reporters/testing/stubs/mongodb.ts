/** MongoDB's protocol: answers hello as a single server, and inserts. (OP_QUERY, OP_MSG) */

import { BSON } from "mongodb";
import { SECRET } from "../contract.ts";
import { type OnWrite, onMessages, type Served, serveSockets } from "./sockets.ts";

const HEADER_BYTES = 16;
const [OP_REPLY, OP_QUERY, OP_MSG] = [1, 2_004, 2_013];
const [UNAUTHORIZED, SHUTDOWN] = [13, 91];

export async function serveMongodb(onWrite: OnWrite): Promise<Served> {
  let port = 0;
  const served = await serveSockets((socket) => {
    const lengthOf = (unread: Buffer): number => (unread.length < 4 ? 0 : unread.readInt32LE(0));
    onMessages(socket, lengthOf, (message) => {
      const [request, operation] = [message.readInt32LE(4), message.readInt32LE(12)];
      const reply = (body: Uint8Array, kind: number | undefined): void => {
        const header = Buffer.alloc(HEADER_BYTES);
        header.writeInt32LE(HEADER_BYTES + body.length, 0);
        header.writeInt32LE(request, 8);
        header.writeInt32LE(kind ?? 0, 12);
        socket.write(Buffer.concat([header, body]));
      };
      if (operation === OP_QUERY) {
        const head = Buffer.alloc(20);
        head.writeInt32LE(1, 16);
        reply(Buffer.concat([head, BSON.serialize(hello())]), OP_REPLY);
        return;
      }
      // Flags, the kind of the first section, and its document.
      const command = BSON.deserialize(message.subarray(HEADER_BYTES + 5), {
        allowObjectSmallerThanBufferSize: true,
      });
      const said = "insert" in command ? insertion(message, port, onWrite) : hello();
      if (said !== null) reply(Buffer.concat([Buffer.alloc(5), BSON.serialize(said)]), OP_MSG);
    });
  });
  port = served.port;
  return served;

  function hello(): BSON.Document {
    return {
      ...{ ok: 1, helloOk: true, isWritablePrimary: true, maxWireVersion: 21, minWireVersion: 0 },
      ...{ maxBsonObjectSize: 16_777_216, maxMessageSizeBytes: 48_000_000, me: `:${port}` },
      ...{ maxWriteBatchSize: 100_000, localTime: new Date(0), readOnly: false },
    };
  }
}

function insertion(message: Buffer, port: number, onWrite: OnWrite): BSON.Document | null {
  // Skips the header and the session, which differ between attempts.
  const ids = message.toString("latin1").match(/[0-9a-f]{64}/g) ?? [];
  const answer = onWrite(ids.join(" "));
  if (answer === "hang") return null;
  if (answer === "take") return { ok: 1, n: ids.length };
  const url = `mongodb://127.0.0.1:${port}/load?appName=${SECRET}`;
  const refused = { code: UNAUTHORIZED, errmsg: `no entry for ${url}` };
  return { ok: 0, ...(answer === "refuse" ? refused : { code: SHUTDOWN, errmsg: "it stops" }) };
}
