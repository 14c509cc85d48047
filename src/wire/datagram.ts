/**
 * Content of a datagram inside its seal: one byte for the protocol, then that protocol's packet. Only health checks use
 * datagrams; a datagram never carries a job. (NET-1)
 */

import { ByteReader, ByteWriter } from "../core/base/bytes.ts";
import type { ElectionPacket } from "../core/membership/election/messages.ts";
import type { SwimDatagram } from "../core/membership/swim/messages.ts";
import { electionPacket, swimDatagram } from "./messages/membership.ts";
import type { Decoded } from "./schema.ts";

export type Datagram =
  | { readonly protocol: "swim"; readonly packet: SwimDatagram }
  | { readonly protocol: "election"; readonly packet: ElectionPacket };

const SWIM = 1;
const ELECTION = 2;

/** Reused by every call: encoding never yields, and a buffer per packet would cost as much as the packet. */
const out = new ByteWriter(2_048);

export function encodeDatagram(datagram: Datagram): Uint8Array {
  out.clear();
  switch (datagram.protocol) {
    case "swim":
      out.uint8(SWIM);
      swimDatagram.write(out, datagram.packet);
      break;
    case "election":
      out.uint8(ELECTION);
      electionPacket.write(out, datagram.packet);
      break;
  }
  return out.take();
}

export function decodeDatagram(bytes: Uint8Array): Decoded<Datagram> {
  const from = new ByteReader(bytes);
  const datagram = readDatagram(from);
  if (from.remaining > 0) from.fail("bytes after the end of a datagram");
  if (datagram === null) from.fail("a datagram of an unknown protocol");
  return from.problem === null && datagram !== null
    ? { ok: true, value: datagram }
    : { ok: false, problem: from.problem ?? "" };
}

function readDatagram(from: ByteReader): Datagram | null {
  switch (from.uint8()) {
    case SWIM:
      return { protocol: "swim", packet: swimDatagram.read(from) };
    case ELECTION:
      return { protocol: "election", packet: electionPacket.read(from) };
    default:
      return null;
  }
}
