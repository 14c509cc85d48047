/**
 * Membership messages.
 *
 * A packet is one datagram, or one request or reply on a stream. It names its sender, carries one message, and has
 * space for riders: the sender's coordinate, its embedded state, and gossip.
 *
 *     packet = sender · message · [coordinate] · [state] · updates*
 *
 * Sequence numbers pair an ack or nack with its ping (UDP-6); a relayed ack says so (C20-3). Joining is a `sync` on a
 * stream; leaving is a `left` update about oneself.
 */

import type { Address, Incarnation, NodeId, Role } from "../../base/ids.ts";
import type { Coordinate } from "../vivaldi/coordinate.ts";

/** A member's record about itself. Changes only together with a higher incarnation. */
export interface NodeRecord {
  readonly id: NodeId;
  readonly address: Address;
  readonly role: Role;
  readonly datacenter: string;
  /** Protocol version spoken: same major talks, different major is refused. (AD-25) */
  readonly versionMajor: number;
  readonly versionMinor: number;
  /** Opaque to membership; at most META_BYTES_MAX. */
  readonly meta: Uint8Array;
}

export type MemberStatus = "alive" | "suspect" | "dead" | "left";

/** One rider of gossip. `join` and `alive` carry the same facts; `join` is sent first. (UDP-2) */
export type Update =
  | { readonly kind: "join"; readonly node: NodeRecord; readonly incarnation: Incarnation }
  | { readonly kind: "alive"; readonly node: NodeRecord; readonly incarnation: Incarnation }
  | {
      /** `from` is the member that accuses, never the one accused. */
      readonly kind: "suspect";
      readonly id: NodeId;
      readonly incarnation: Incarnation;
      readonly from: NodeId;
    }
  | {
      readonly kind: "dead";
      readonly id: NodeId;
      readonly incarnation: Incarnation;
      readonly from: NodeId;
    }
  | {
      /** `from` is the member itself, or who forced it out. */
      readonly kind: "left";
      readonly id: NodeId;
      readonly incarnation: Incarnation;
      readonly from: NodeId;
    }
  | {
      /** Application gossip, delivered at most once per (origin, boot, sequence). */
      readonly kind: "user";
      readonly origin: NodeId;
      readonly boot: number;
      readonly sequence: number;
      readonly payload: Uint8Array;
    };

/** State of the sender for its peers (a heartbeat of its role); membership knows nothing of the content. (EMB-1) */
export interface EmbeddedState {
  readonly boot: number;
  readonly version: number;
  readonly body: Uint8Array;
}

/** One line of a push/pull exchange. */
export interface MemberState {
  readonly node: NodeRecord;
  readonly incarnation: Incarnation;
  readonly status: MemberStatus;
}

/** Sent as datagrams. */
export type DatagramMessage =
  | {
      readonly kind: "ping";
      readonly sequence: number;
      /** Answered only by the member it names. */
      readonly target: NodeId;
    }
  | {
      readonly kind: "ack";
      readonly sequence: number;
      /** The member that is alive: the sender itself or, if relayed, the target of an indirect probe. */
      readonly target: NodeId;
      readonly relayed: boolean;
      /** The responder's own last measured round trip to the receiver; 0 when unknown. (AD-35.4) */
      readonly rttMs: number;
    }
  | { readonly kind: "nack"; readonly sequence: number; readonly target: NodeId }
  | {
      readonly kind: "pingRequest";
      readonly sequence: number;
      readonly target: NodeId;
      readonly targetAddress: Address;
    }
  | { readonly kind: "gossip" }
  | { readonly kind: "nameQuery"; readonly sequence: number; readonly id: NodeId }
  | {
      readonly kind: "nameAnswer";
      readonly sequence: number;
      readonly id: NodeId;
      readonly address: Address;
    };

/** Sent on streams: one request, one reply. */
export type StreamMessage =
  | { readonly kind: "streamPing"; readonly sequence: number; readonly target: NodeId }
  | { readonly kind: "streamAck"; readonly sequence: number }
  | {
      readonly kind: "sync";
      readonly join: boolean;
      readonly members: readonly MemberState[];
    }
  | { readonly kind: "syncReply"; readonly members: readonly MemberState[] }
  | { readonly kind: "streamRefusal"; readonly code: RefusalCode };

export type RefusalCode = "NOT_ME" | "VERSION" | "BUSY" | "LEAVING";

export const REFUSAL_CODES: readonly RefusalCode[] = ["NOT_ME", "VERSION", "BUSY", "LEAVING"];

interface Envelope<Message> {
  readonly from: NodeId;
  /** Where the sender listens; the observed source may differ behind a translator. */
  readonly fromAddress: Address;
  readonly incarnation: Incarnation;
  readonly message: Message;
  readonly coordinate: Coordinate | null;
  readonly state: EmbeddedState | null;
  readonly updates: readonly Update[];
}

export type SwimDatagram = Envelope<DatagramMessage>;
export type SwimStreamPacket = Envelope<StreamMessage>;
export type SwimPacket = Envelope<DatagramMessage | StreamMessage>;

/** Limits of the messages. The decoder refuses what exceeds them before it allocates. */
export const META_BYTES_MAX = 512;
export const DATACENTER_BYTES_MAX = 64;
export const STATE_BYTES_MAX = 400;
export const USER_PAYLOAD_BYTES_MAX = 512;
/** A compound of more than 255 parts corrupted memberlist's packets (1.5.6). */
export const UPDATES_PER_PACKET_MAX = 255;
export const SYNC_MEMBERS_MAX = 65_536;
/** One datagram as it leaves, sealed: fits any path we meet, IPv6 tunnels included. (UDP-4) */
export const DATAGRAM_BYTES_MAX = 1_200;
/** Bytes that sealing and framing may add to a packet. */
export const SEAL_BYTES_MAX = 100;
/** One packet before sealing: a machine never emits a larger datagram. */
export const PACKET_BYTES_MAX = DATAGRAM_BYTES_MAX - SEAL_BYTES_MAX;
/** Upper bound of everything in a datagram that is neither coordinate, state nor update. */
export const ENVELOPE_BYTES_MAX = 340;
/** Upper bound of an encoded coordinate: 4 to 8 dimensions, height, two errors, adjustment, count. */
export const COORDINATE_BYTES_MAX = 112;

/** Upper bound of an update's encoding; the codec's tests hold it to this. */
export function updateBytesMax(update: Update): number {
  switch (update.kind) {
    case "join":
    case "alive":
      return 20 + recordBytesMax(update.node);
    case "suspect":
    case "dead":
    case "left":
      return 20 + textBytesMax(update.id) + textBytesMax(update.from);
    case "user":
      return 36 + textBytesMax(update.origin) + update.payload.length;
  }
}

function recordBytesMax(node: NodeRecord): number {
  const texts = textBytesMax(node.id) + textBytesMax(node.address) + textBytesMax(node.datacenter);
  return 14 + texts + node.meta.length;
}

/** Length prefix and UTF-8; ids and addresses are ASCII in practice, and the bound holds if they are not. */
function textBytesMax(text: string): number {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0x7f) return 2 + text.length * 3;
  return 2 + text.length;
}
