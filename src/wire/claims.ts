/**
 * Roles from certificates, and which role may open a stream to which. (AD-28.7..10, C10-26)
 *
 * A certificate names its holder by URIs in the subject's alternative names, each exactly once:
 * `hyperscale://role/…`, `hyperscale://cluster/…`, `hyperscale://env/…`, `hyperscale://dc/…`.
 */

export type PeerRole = "client" | "gate" | "manager" | "worker";

export const PEER_ROLES: readonly PeerRole[] = ["client", "gate", "manager", "worker"];

export interface Claims {
  readonly role: PeerRole;
  readonly cluster: string;
  readonly environment: string;
  readonly datacenter: string;
}

type ClaimsResult =
  | { readonly ok: true; readonly claims: Claims }
  | { readonly ok: false; readonly problem: string };

const URIS_MAX = 64;

/** From the URIs of a certificate. Foreign URIs are left alone; ours must be complete and single. */
export function readClaims(uris: readonly string[]): ClaimsResult {
  if (uris.length > URIS_MAX) return refuse(`more than ${URIS_MAX} alternative names`);
  const found = new Map<string, string>();
  for (const uri of uris) {
    if (!uri.startsWith("hyperscale://")) continue;
    const match = /^hyperscale:\/\/(role|cluster|env|dc)\/([A-Za-z0-9._-]{1,64})$/.exec(uri);
    if (match === null) return refuse(`unreadable claim "${uri.slice(0, 100)}"`);
    const [, name = "", value = ""] = match;
    if (found.has(name)) return refuse(`claim "${name}" occurs twice`);
    found.set(name, value);
  }
  for (const name of ["role", "cluster", "env", "dc"]) {
    if (!found.has(name)) return refuse(`claim "hyperscale://${name}/…" is missing`);
  }
  const role = PEER_ROLES.find((known) => known === found.get("role"));
  if (role === undefined) return refuse(`unknown role "${found.get("role")}"`);
  return {
    ok: true,
    claims: {
      role,
      cluster: found.get("cluster") ?? "",
      environment: found.get("env") ?? "",
      datacenter: found.get("dc") ?? "",
    },
  };
}

/**
 * Which role may send requests to which on a stream. The matrix governs work; membership (join, push/pull, fallback
 * probes) is open to every member of a cluster, since SWIM probes any pair. (C10-26)
 */
const MATRIX: Readonly<Record<PeerRole, readonly PeerRole[]>> = {
  client: ["gate"],
  gate: ["manager", "gate", "client"],
  manager: ["worker", "manager", "gate", "client"],
  worker: ["manager"],
};

export function mayConnect(initiator: PeerRole, target: PeerRole): string | null {
  if (MATRIX[initiator].includes(target)) return null;
  return `Connection denied: role '${initiator}' cannot connect to '${target}'`;
}

function refuse(problem: string): ClaimsResult {
  return { ok: false, problem };
}
