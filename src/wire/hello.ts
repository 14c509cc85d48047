/**
 * Greeting of two nodes on a stream: identity, cluster, protocol. Cluster and environment are checked before anything
 * else; a rejection names what was expected. (AD-25, AD-28.5, SEC-13)
 */

import { ADDRESS_BYTES_MAX, NODE_ID_BYTES_MAX } from "../core/base/ids.ts";
import { type Claims, PEER_ROLES, type PeerRole } from "./claims.ts";
import { CAPABILITIES_MAX, ERROR_BYTES_MAX, ID_BYTES_MAX } from "./limits.ts";
import { list, oneOf, optional, required, struct, type Type, text, uint, union } from "./schema.ts";
import { type Negotiated, negotiate, type ProtocolVersion } from "./version.ts";

export interface Hello {
  readonly cluster: string;
  readonly environment: string;
  readonly versionMajor: number;
  readonly versionMinor: number;
  readonly capabilities: readonly string[];
  /** Version of the software; informational only. (AD-25.3) */
  readonly nodeVersion: string;
  readonly node: string;
  readonly address: string;
  readonly role: PeerRole;
  readonly datacenter: string;
}

export const hello: Type<Hello> = struct<Hello>("hello", {
  cluster: required(1, text(ID_BYTES_MAX)),
  environment: required(2, text(ID_BYTES_MAX)),
  versionMajor: required(3, uint),
  versionMinor: required(4, uint),
  capabilities: optional(5, list(text(ID_BYTES_MAX), CAPABILITIES_MAX), []),
  nodeVersion: optional(6, text(ID_BYTES_MAX), ""),
  node: required(7, text(NODE_ID_BYTES_MAX)),
  address: optional(8, text(ADDRESS_BYTES_MAX), ""),
  role: required(9, oneOf(PEER_ROLES)),
  datacenter: optional(10, text(ID_BYTES_MAX), ""),
});

type HelloRefusalCode = "CLUSTER" | "ENVIRONMENT" | "VERSION" | "CLAIMS" | "ROLE" | "BUSY";

const REFUSALS: readonly HelloRefusalCode[] = [
  "CLUSTER",
  "ENVIRONMENT",
  "VERSION",
  "CLAIMS",
  "ROLE",
  "BUSY",
];

export type HelloAnswer =
  | { readonly kind: "welcome"; readonly hello: Hello }
  | { readonly kind: "refused"; readonly code: HelloRefusalCode; readonly text: string };

export const helloAnswer: Type<HelloAnswer> = union<HelloAnswer>("helloAnswer", {
  welcome: { number: 1, fields: { hello: required(1, hello) } },
  refused: {
    number: 2,
    fields: { code: required(1, oneOf(REFUSALS)), text: required(2, text(ERROR_BYTES_MAX)) },
  },
});

type HelloJudgement =
  | { readonly ok: true; readonly version: ProtocolVersion; readonly features: readonly string[] }
  | { readonly ok: false; readonly code: HelloRefusalCode; readonly text: string };

/** `claims` are those of the peer's certificate, null without mutual TLS. */
export function judgeHello(ours: Hello, theirs: Hello, claims: Claims | null): HelloJudgement {
  if (theirs.cluster !== ours.cluster) {
    return refuse("CLUSTER", `cluster "${theirs.cluster}" met cluster "${ours.cluster}"`);
  }
  if (theirs.environment !== ours.environment) {
    const text = `environment "${theirs.environment}" met environment "${ours.environment}"`;
    return refuse("ENVIRONMENT", text);
  }
  const agreed: Negotiated = negotiate(capabilitiesOf(ours), capabilitiesOf(theirs));
  if (!agreed.ok) return refuse("VERSION", agreed.problem);
  const contradiction = claims === null ? null : contradictionOf(theirs, claims);
  if (contradiction !== null) return refuse("CLAIMS", contradiction);
  return { ok: true, version: agreed.version, features: agreed.features };
}

/** Whether both sides of a connection can use it. */
export function agreeOn(feature: string, ours: Hello, theirs: Hello): boolean {
  const agreed = negotiate(capabilitiesOf(ours), capabilitiesOf(theirs));
  return agreed.ok && agreed.features.includes(feature);
}

function contradictionOf(theirs: Hello, claims: Claims): string | null {
  const pairs = [
    ["cluster", theirs.cluster, claims.cluster],
    ["environment", theirs.environment, claims.environment],
    ["role", theirs.role, claims.role],
    ["datacenter", theirs.datacenter, claims.datacenter],
  ] as const;
  const wrong = pairs.find(([, said, certified]) => said !== certified);
  if (wrong === undefined) return null;
  const [what, said, certified] = wrong;
  return `${what} "${said}" but the certificate says "${certified}"`;
}

function capabilitiesOf(from: Hello): {
  version: ProtocolVersion;
  capabilities: readonly string[];
} {
  return {
    version: { major: from.versionMajor, minor: from.versionMinor },
    capabilities: from.capabilities,
  };
}

function refuse(code: HelloRefusalCode, text: string): HelloJudgement {
  return { ok: false, code, text };
}
