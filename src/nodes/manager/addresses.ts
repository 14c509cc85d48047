/** Where clients reach the nodes of one tier. */

import type { LedgerConfig } from "../../ledger/config.ts";
import { formatAddress } from "../../wire/address.ts";

/** By name, as the nodes know each other: clients reach them there, too. */
export function addressesOf({ bind, name, peers }: LedgerConfig): Readonly<Record<string, string>> {
  const others = peers.map((peer) => [peer.name, peer.address] as const);
  // A wildcard listener does not know the address it is reached at.
  const isEverywhere = bind.host === "0.0.0.0" || bind.host === "::";
  const own = isEverywhere ? [] : [[name, formatAddress(bind.host, bind.port)] as const];
  return Object.fromEntries([...own, ...others]);
}
