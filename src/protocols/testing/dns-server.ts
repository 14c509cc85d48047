/** A DNS server on loopback that answers every query for an IPv4 address as the test specifies. */

import dgram from "node:dgram";
import type { AddressInfo } from "node:net";

interface DnsServer {
  readonly address: string;
  /** Number of received queries for IPv4 addresses. */
  questions(): number;
  close(): void;
}

const TYPE_A = 1;

export async function startDnsServer(answer: () => readonly string[]): Promise<DnsServer> {
  let questions = 0;
  const socket = dgram.createSocket("udp4");
  socket.on("message", (query, from) => {
    let end = 12;
    while ((query[end] ?? 0) !== 0) end += (query[end] ?? 0) + 1;
    end += 5;
    const isA = query.readUInt16BE(end - 4) === TYPE_A;
    if (isA) questions++;
    const records = (isA ? answer() : []).map((ip) =>
      // Name by pointer, type A, class IN, ttl 0, four bytes. RFC 1035 §4.1.3.
      Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...ip.split(".").map(Number)]),
    );
    const head = Buffer.from([0, 0, 0x81, 0x80, 0, 1, 0, records.length, 0, 0, 0, 0]);
    query.copy(head, 0, 0, 2);
    socket.send(
      Buffer.concat([head, query.subarray(12, end), ...records]),
      from.port,
      from.address,
    );
  });
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  const { port } = socket.address() as AddressInfo;
  return {
    address: `127.0.0.1:${port}`,
    questions: () => questions,
    close: () => socket.close(),
  };
}
