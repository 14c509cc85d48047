/** A member's sockets on one address: datagrams by UDP, streams by TCP or mutual TLS. */

import { TcpPort } from "../../host/tcp.ts";
import { readTlsMaterial } from "../../host/tls.ts";
import { UdpPort } from "../../host/udp.ts";
import {
  CONNECTIONS_FOR_MEMBERS,
  CONNECTIONS_MAX,
  CONNECTIONS_PER_HOST_MAX,
} from "../../wire/limits.ts";
import type { AgentConfig } from "./config.ts";

export interface Sockets {
  readonly udp: UdpPort;
  readonly tcp: TcpPort;
}

/** `isMember`: true for hosts of members; slots are reserved for them. */
export async function openSockets(
  config: AgentConfig,
  isMember: (host: string) => boolean,
): Promise<Sockets> {
  const { host, port } = config.bind;
  const tls = config.tls === null ? null : readTlsMaterial(config.tls);
  const places = {
    total: CONNECTIONS_MAX,
    perHost: CONNECTIONS_PER_HOST_MAX,
    forMembers: CONNECTIONS_FOR_MEMBERS,
  };
  const tcp = await TcpPort.listen({ host, port, tls, places, isMember });
  try {
    return { tcp, udp: await UdpPort.bind(host, port) };
  } catch (error) {
    await tcp.close();
    throw error;
  }
}
