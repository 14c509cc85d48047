/**
 * The bytes of membership, election and federated health. Field numbers and variant numbers are for
 * ever: a new field takes a new number, a removed one is never reused.
 */

import {
  ADDRESS_BYTES_MAX,
  type Address,
  COUNTER_MAX,
  type Incarnation,
  NODE_ID_BYTES_MAX,
  type NodeId,
  ROLES,
  type Term,
} from "../../core/base/ids.ts";
import { ELECTORATE_DIGEST_CHARACTERS } from "../../core/membership/election/electorate.ts";
import {
  type ElectionMessage,
  type ElectionPacket,
  GROUP_BYTES_MAX,
} from "../../core/membership/election/messages.ts";
import {
  DATACENTER_BYTES_MAX,
  type DatagramMessage,
  type EmbeddedState,
  META_BYTES_MAX,
  type MemberState,
  type MemberStatus,
  type NodeRecord,
  REFUSAL_CODES,
  STATE_BYTES_MAX,
  type StreamMessage,
  type SwimDatagram,
  type SwimStreamPacket,
  SYNC_MEMBERS_MAX,
  UPDATES_PER_PACKET_MAX,
  type Update,
  USER_PAYLOAD_BYTES_MAX,
} from "../../core/membership/swim/messages.ts";
import {
  COORDINATE_DIMENSIONS_MAX,
  type Coordinate,
} from "../../core/membership/vivaldi/coordinate.ts";
import {
  bool,
  branded,
  bytes,
  counter,
  type Field,
  type Fields,
  float,
  list,
  nullable,
  oneOf,
  optional,
  recurring,
  required,
  struct,
  type Type,
  text,
  union,
} from "../schema.ts";

/** Highest version number of a protocol. */
const VERSION_MAX = 65_535;
const id = branded<NodeId>(text(NODE_ID_BYTES_MAX, 1));
const address = branded<Address>(text(ADDRESS_BYTES_MAX, 1));
/** Every number that a peer counts: bounded, so that no machine ever adds beyond what is exact. */
const count = counter(COUNTER_MAX);
const incarnation = branded<Incarnation>(count);
const term = branded<Term>(count);
const version = counter(VERSION_MAX);
const NO_BYTES = new Uint8Array(0);
const STATUSES: readonly MemberStatus[] = ["alive", "suspect", "dead", "left"];

const coordinate = struct<Coordinate>("coordinate", {
  position: required(1, list(float, COORDINATE_DIMENSIONS_MAX)),
  height: required(2, float),
  error: required(3, float),
  errorMs: required(4, float),
  adjustment: required(5, float),
  sampleCount: required(6, count),
});

const record = recurring(
  struct<NodeRecord>("node", {
    id: required(1, id),
    address: required(2, address),
    role: required(3, oneOf(ROLES)),
    datacenter: required(4, text(DATACENTER_BYTES_MAX)),
    versionMajor: required(5, version),
    versionMinor: required(6, version),
    meta: optional(7, bytes(META_BYTES_MAX), NO_BYTES),
  }),
);

const life: Fields<{ readonly node: NodeRecord; readonly incarnation: Incarnation }> = {
  node: required(1, record),
  incarnation: required(2, incarnation),
};

const accusation: Fields<{
  readonly id: NodeId;
  readonly incarnation: Incarnation;
  readonly from: NodeId;
}> = {
  id: required(1, id),
  incarnation: required(2, incarnation),
  from: required(3, id),
};

const update = union<Update>("update", {
  join: { number: 1, fields: life },
  alive: { number: 2, fields: life },
  suspect: { number: 3, fields: accusation },
  dead: { number: 4, fields: accusation },
  left: { number: 5, fields: accusation },
  user: {
    number: 6,
    fields: {
      origin: required(1, id),
      boot: required(2, count),
      sequence: required(3, count),
      payload: required(4, bytes(USER_PAYLOAD_BYTES_MAX)),
    },
  },
});

const state = struct<EmbeddedState>("state", {
  boot: required(1, count),
  version: required(2, count),
  body: required(3, bytes(STATE_BYTES_MAX)),
});

const member = struct<MemberState>("member", {
  node: required(1, record),
  incarnation: required(2, incarnation),
  status: required(3, oneOf(STATUSES)),
});

const sequence: Field<number> = required(1, count);
const target: Field<NodeId> = required(2, id);

const datagramMessage = union<DatagramMessage>("datagram", {
  ping: { number: 1, fields: { sequence, target } },
  ack: {
    number: 2,
    fields: {
      sequence,
      target,
      relayed: optional(3, bool, false),
      rttMs: optional(4, float, 0),
    },
  },
  nack: { number: 3, fields: { sequence, target } },
  pingRequest: {
    number: 4,
    fields: { sequence, target, targetAddress: required(3, address) },
  },
  gossip: { number: 5, fields: {} },
  nameQuery: { number: 6, fields: { sequence, id: required(2, id) } },
  nameAnswer: {
    number: 7,
    fields: { sequence, id: required(2, id), address: required(3, address) },
  },
});

const members = list(member, SYNC_MEMBERS_MAX);

const streamMessage = union<StreamMessage>("stream", {
  streamPing: { number: 1, fields: { sequence, target } },
  streamAck: { number: 2, fields: { sequence } },
  sync: {
    number: 3,
    fields: { join: optional(1, bool, false), members: required(2, members) },
  },
  syncReply: { number: 4, fields: { members: required(2, members) } },
  streamRefusal: { number: 5, fields: { code: required(1, oneOf(REFUSAL_CODES)) } },
});

function packet<Message>(message: Type<Message>) {
  return {
    from: required(1, id),
    fromAddress: required(2, address),
    incarnation: required(3, incarnation),
    message: required(4, message),
    coordinate: optional(5, nullable(coordinate), null),
    state: optional(6, nullable(state), null),
    updates: optional(7, list(update, UPDATES_PER_PACKET_MAX), []),
  };
}

export const swimDatagram = struct<SwimDatagram>("membership", packet(datagramMessage));
export const swimStreamPacket = struct<SwimStreamPacket>("exchange", packet(streamMessage));

const ballot = { term: required(1, term), round: required(2, count) };
const answer = { ...ballot, granted: required(3, bool) };
const beat = { term: required(1, term), sequence: required(2, count) };

export const electionPacket = struct<ElectionPacket>("election", {
  from: required(1, id),
  group: required(2, text(GROUP_BYTES_MAX)),
  message: required(
    3,
    union<ElectionMessage>("ballot", {
      preVote: { number: 1, fields: ballot },
      preVoteReply: { number: 2, fields: answer },
      vote: { number: 3, fields: ballot },
      voteReply: { number: 4, fields: answer },
      heartbeat: { number: 5, fields: beat },
      heartbeatAck: { number: 6, fields: beat },
      stepDown: { number: 7, fields: { term: required(1, term) } },
    }),
  ),
  electorate: optional(4, text(ELECTORATE_DIGEST_CHARACTERS), ""),
});
