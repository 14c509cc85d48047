/**
 * librdkafka's mock cluster (in Debian's `kcat`), which the authors of the C client test with: it speaks the protocol,
 * keeps its logs in memory, and supports neither users nor TLS. Also a scripted broker.
 */

import { Kafka, logLevel } from "kafkajs";
import type { CountingServer } from "../../testing/contract.ts";
import { findProgram, type ServerPackage, startServer } from "../../testing/real-server.ts";
import { listenTcp, type Peer, type ScriptedServer } from "../../testing/scripted-server.ts";

export const KCAT: ServerPackage = { program: "kcat", package: "kcat" };
export const kcatProgram = findProgram(KCAT);

/** Topic of the calls that are counted. */
export const TOPIC = "served";

export interface KafkaServer extends CountingServer {
  readonly url: string;
  /** Messages of a topic, computed from the offsets of its partitions. */
  count(topic: string): Promise<number>;
}

export async function startKafka(): Promise<KafkaServer> {
  const program = kcatProgram;
  if (program === null) throw new Error("there is no kcat");
  const server = await startServer({
    program,
    args: () => [
      ...["-P", "-t", "unused", "-b", "127.0.0.1:1", "-d", "mock"],
      ...["-X", "test.mock.num.brokers=1"],
    ],
    announced: (output) =>
      Number(/bootstrap\.servers=127\.0\.0\.1:(\d+)/.exec(output)?.[1]) || null,
  });
  const brokers = [`127.0.0.1:${server.port}`];
  const admin = new Kafka({ brokers, logLevel: logLevel.NOTHING }).admin();
  await admin.connect();
  const count = async (topic: string): Promise<number> => {
    const partitions = await admin.fetchTopicOffsets(topic);
    return partitions.reduce((sum, { high }) => sum + Number(high), 0);
  };
  return {
    port: server.port,
    url: `kafka://127.0.0.1:${server.port}`,
    count,
    served: () => count(TOPIC),
    stop: async () => {
      await admin.disconnect();
      await server.stop();
    },
  };
}

const API = { produce: 0, metadata: 3, versions: 18 };

const int16 = (value: number): Buffer => Buffer.from([value >> 8, value & 255]);
const int32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
};
const text = (value: string): Buffer => Buffer.concat([int16(value.length), Buffer.from(value)]);
const list = (...items: readonly Buffer[]): Buffer =>
  Buffer.concat([int32(items.length), ...items]);

/** A response with the correlation id of its request and its length prefix. */
export const answer = (correlation: number, ...parts: readonly Buffer[]): Buffer => {
  const payload = Buffer.concat([int32(correlation), ...parts]);
  return Buffer.concat([int32(payload.length), payload]);
};

/** Offers only the oldest version of each API. */
const versions = (): Buffer => {
  const upTo: readonly (readonly [number, number])[] = [
    [API.produce, 3],
    [API.metadata, 0],
    [API.versions, 0],
  ];
  const items = upTo.map(([key, max]) => Buffer.concat([int16(key), int16(0), int16(max)]));
  return Buffer.concat([int16(0), list(...items)]);
};

const metadata = (port: number): Buffer => {
  const broker = Buffer.concat([int32(1), text("127.0.0.1"), int32(port)]);
  const partition = Buffer.concat([int16(0), int32(0), int32(1), list(int32(1)), list(int32(1))]);
  const topic = Buffer.concat([int16(0), text(TOPIC), list(partition)]);
  return Buffer.concat([list(broker), list(topic)]);
};

/** Has one broker and one partition, and invokes the callback for each produced message. */
export async function listenMessages(onCall: (peer: Peer) => void): Promise<ScriptedServer> {
  const server = await listenTcp((socket) => {
    let kept = Buffer.alloc(0);
    socket.on("data", (bytes) => {
      kept = Buffer.concat([kept, bytes]);
      while (kept.length >= 4 && kept.length >= 4 + kept.readInt32BE(0)) {
        const request = kept.subarray(4, 4 + kept.readInt32BE(0));
        kept = kept.subarray(4 + request.length);
        const [key, correlation] = [request.readInt16BE(0), request.readInt32BE(4)];
        if (key === API.versions) socket.write(answer(correlation, versions()));
        else if (key === API.metadata) socket.write(answer(correlation, metadata(server.port)));
        else onCall(answering(socket, correlation));
      }
    });
  });
  return server;
}

/** Sets the correlation id of messages that have the form of a response. */
function answering(peer: Peer, correlation: number): Peer {
  const numbered = (bytes: Uint8Array): Uint8Array => {
    if (bytes.length < 8) return bytes;
    return Buffer.concat([bytes.subarray(0, 4), int32(correlation), bytes.subarray(8)]);
  };
  return {
    write: (bytes) => peer.write(numbered(bytes)),
    end: (bytes) => peer.end(numbered(bytes)),
    destroy: () => peer.destroy(),
  };
}
