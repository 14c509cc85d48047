/** PostgreSQL's protocol, version 3: accepts every login, and answers whole batches at their end (Sync). */

import { SECRET } from "../contract.ts";
import { type OnWrite, onMessages, type Served, serveSockets } from "./sockets.ts";

export function servePostgres(onWrite: OnWrite): Promise<Served> {
  return serveSockets((socket) => {
    let greeted = false;
    let bound = "";
    const ready = message("Z", Buffer.from("I"));
    const lengthOf = (unread: Buffer): number => {
      if (!greeted) return unread.length < 4 ? 0 : unread.readInt32BE(0);
      return unread.length < 5 ? 0 : 1 + unread.readInt32BE(1);
    };
    onMessages(socket, lengthOf, (bytes) => {
      if (!greeted) {
        greeted = true;
        socket.write(Buffer.concat([message("R", Buffer.alloc(4)), ready]));
        return;
      }
      const kind = String.fromCharCode(bytes[0] ?? 0);
      if (kind === "Q") socket.write(Buffer.concat([complete("CREATE TABLE"), ready]));
      if (kind === "B") bound = bytes.toString("base64");
      if (kind !== "S") return;
      const answer = onWrite(bound);
      if (answer === "hang") return;
      const taken = ["1", "2", "n"].map((sign) => message(sign, Buffer.alloc(0)));
      const refused = error("42501", `no entry for ${SECRET}`);
      const passing = error("57P03", "the database system is starting up");
      const said = { take: [...taken, complete("INSERT 0 1")], refuse: [refused] };
      socket.write(Buffer.concat([...(said[answer as keyof typeof said] ?? [passing]), ready]));
    });
  });
}

function message(kind: string, body: Uint8Array): Buffer {
  const head = Buffer.alloc(5, kind);
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}

function complete(tag: string): Buffer {
  return message("C", Buffer.from(`${tag}\0`));
}

function error(code: string, text: string): Buffer {
  return message("E", Buffer.from(`SERROR\0C${code}\0M${text}\0\0`));
}
