/** Cassandra's protocol, version 3: asks for a password, prepares any statement, and answers executions. */

import { SECRET } from "../contract.ts";
import { type OnWrite, onMessages, type Served, serveSockets } from "./sockets.ts";

const HEADER_BYTES = 9;
const [ERROR, STARTUP, READY, AUTHENTICATE, QUERY, RESULT] = [0x00, 0x01, 0x02, 0x03, 0x07, 0x08];
const [PREPARE, EXECUTE, AUTH_RESPONSE, AUTH_SUCCESS] = [0x09, 0x0a, 0x0f, 0x10];
const [BAD_CREDENTIALS, OVERLOADED, UNAUTHORIZED] = [0x0100, 0x1001, 0x2100];

/** All rows in flight are one write. */
export function serveCassandra(onWrite: OnWrite): Promise<Served> {
  return serveSockets((socket) => {
    let written = "";
    let waiting: number[] = [];
    // A rejected write ends with its connection; the rest of it may still be in flight.
    let isOver = false;
    const send = (stream: number, code: number, body: Uint8Array): void => {
      const header = Buffer.alloc(HEADER_BYTES);
      header.writeUInt8(0x83, 0);
      header.writeInt16BE(stream, 2);
      header.writeUInt8(code, 4);
      header.writeInt32BE(body.length, 5);
      socket.write(Buffer.concat([header, body]));
    };
    const answered = (): void => {
      const streams = waiting;
      waiting = [];
      const answer = onWrite(written);
      written = "";
      isOver = answer !== "take";
      for (const stream of answer === "hang" ? [] : streams) {
        if (answer === "take") send(stream, RESULT ?? 0, int(1));
        else if (answer === "refuse")
          send(stream, ERROR ?? 0, failure(UNAUTHORIZED ?? 0, `no entry for ${SECRET}`));
        else send(stream, ERROR ?? 0, failure(OVERLOADED ?? 0, "overloaded"));
      }
    };
    let pause: NodeJS.Immediate | undefined;
    const lengthOf = (unread: Buffer): number =>
      unread.length < HEADER_BYTES ? 0 : HEADER_BYTES + unread.readInt32BE(5);
    onMessages(socket, lengthOf, (frame) => {
      if (isOver) return;
      const [stream, code] = [frame.readInt16BE(2), frame[4]];
      const body = frame.subarray(HEADER_BYTES);
      if (code === STARTUP) send(stream, AUTHENTICATE ?? 0, shortText("PasswordAuthenticator"));
      else if (code === AUTH_RESPONSE) {
        const knows = body.toString("utf8", 4) === `\0ada\0${SECRET}`;
        if (knows) send(stream, AUTH_SUCCESS ?? 0, int(-1));
        else send(stream, ERROR ?? 0, failure(BAD_CREDENTIALS ?? 0, "who are you"));
      } else if (code === QUERY) send(stream, RESULT ?? 0, int(1));
      else if (code === PREPARE)
        send(stream, RESULT ?? 0, Buffer.concat([int(4), shortText("statement")]));
      else if (code === EXECUTE) {
        waiting.push(stream);
        // A write is identified by its first row: its end depends on timing.
        written ||= body.toString("base64");
        clearImmediate(pause);
        // Rows still in flight belong to the same write.
        pause = setImmediate(answered);
      } else send(stream, READY ?? 0, Buffer.alloc(0));
    });
  });
}

function int(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

function shortText(text: string): Buffer {
  const bytes = Buffer.from(text);
  const length = Buffer.alloc(2);
  length.writeUInt16BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

function failure(code: number, text: string): Buffer {
  return Buffer.concat([int(code), shortText(text)]);
}
