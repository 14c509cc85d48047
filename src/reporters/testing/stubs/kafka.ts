/** A Kafka broker that leads the only partition of every topic. (ApiVersions 0-2, Metadata 1, Produce 3) */

import { type OnWrite, onMessages, type Served, serveSockets } from "./sockets.ts";

const [PRODUCE, METADATA, API_VERSIONS] = [0, 3, 18];
const [NOT_ENOUGH_REPLICAS, NOT_AUTHORIZED] = [19, 29];

export async function serveKafka(onWrite: OnWrite): Promise<Served> {
  let port = 0;
  const served = await serveSockets((socket) => {
    const lengthOf = (unread: Buffer): number =>
      unread.length < 4 ? 0 : 4 + unread.readInt32BE(0);
    onMessages(socket, lengthOf, (message) => {
      const [api, correlation] = [message.readInt16BE(4), message.readInt32BE(8)];
      const body = message.subarray(14 + message.readInt16BE(12));
      const reply = (...parts: readonly Uint8Array[]): void => {
        const bytes = Buffer.concat([int32(correlation), ...parts]);
        socket.write(Buffer.concat([int32(bytes.length), bytes]));
      };
      if (api === API_VERSIONS) reply(...versions());
      else if (api === METADATA) reply(...metadata(body, port));
      else if (api === PRODUCE) {
        const { records, topic } = produced(body);
        const answer = onWrite(records);
        if (answer === "hang") return;
        const code = { take: 0, refuse: NOT_AUTHORIZED }[answer as "take" | "refuse"];
        const partition = [int32(0), int16(code ?? NOT_ENOUGH_REPLICAS ?? 0), long(0), long(-1)];
        reply(int32(1), text(topic), int32(1), ...partition, int32(0));
      }
    });
  });
  port = served.port;
  return served;
}

function versions(): Buffer[] {
  const taken = [...[PRODUCE, 3, 3], ...[METADATA, 1, 1], ...[API_VERSIONS, 0, 2]];
  return [int16(0), int32(3), ...taken.map((value) => int16(value ?? 0)), int32(0)];
}

/** Every requested topic exists. */
function metadata(body: Buffer, port: number): Buffer[] {
  const count = Math.max(0, body.readInt32BE(0));
  const topics: Buffer[] = [];
  let at = 4;
  for (let number = 0; number < count; number++) {
    const end = at + 2 + body.readInt16BE(at);
    const partition = [int16(0), int32(0), int32(1), int32(1), int32(1), int32(1), int32(1)];
    topics.push(int16(0), body.subarray(at, end), Buffer.from([0]), int32(1), ...partition);
    at = end;
  }
  const broker = [int32(1), text("127.0.0.1"), int32(port), int16(-1)];
  return [int32(1), ...broker, int32(1), int32(count), ...topics];
}

/** Reads Produce: transaction, acks, timeout, one topic with one partition. */
function produced(body: Buffer): { readonly topic: string; readonly records: string } {
  let at = 2 + Math.max(0, body.readInt16BE(0)) + 2 + 4 + 4;
  const length = body.readInt16BE(at);
  const topic = body.toString("utf8", at + 2, at + 2 + length);
  at += 2 + length + 4 + 4;
  const records = body.subarray(at + 4, at + 4 + body.readInt32BE(at));
  return { topic, records: records.toString("base64") };
}

function int16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeInt16BE(value);
  return bytes;
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

function long(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(BigInt(value));
  return bytes;
}

function text(value: string): Buffer {
  return Buffer.concat([int16(Buffer.byteLength(value)), Buffer.from(value)]);
}
