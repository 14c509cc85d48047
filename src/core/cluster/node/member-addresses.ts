/** Addresses of members by name and host, and which members are alive or suspected. */

import { hostOf } from "../../../wire/address.ts";
import type { Address, NodeId } from "../../base/ids.ts";

export class MemberAddresses {
  readonly #byId = new Map<NodeId, Address>();
  readonly #live = new Set<NodeId>();
  /** Number of members per host. */
  readonly #hosts = new Map<string, number>();

  get(id: NodeId): Address | undefined {
    return this.#byId.get(id);
  }

  set(id: NodeId, address: Address, live: boolean): void {
    if (live) this.#live.add(id);
    else this.#live.delete(id);
    if (this.#byId.get(id) === address) return;
    this.#remove(id);
    this.#byId.set(id, address);
    const host = hostOf(address);
    this.#hosts.set(host, (this.#hosts.get(host) ?? 0) + 1);
  }

  delete(id: NodeId): void {
    this.#live.delete(id);
    this.#remove(id);
  }

  hasHost(host: string): boolean {
    return this.#hosts.has(host);
  }

  live(): readonly Address[] {
    const addresses: Address[] = [];
    for (const id of this.#live) {
      const address = this.#byId.get(id);
      if (address !== undefined) addresses.push(address);
    }
    return addresses;
  }

  #remove(id: NodeId): void {
    const address = this.#byId.get(id);
    if (address === undefined) return;
    this.#byId.delete(id);
    const host = hostOf(address);
    const left = (this.#hosts.get(host) ?? 1) - 1;
    if (left === 0) this.#hosts.delete(host);
    else this.#hosts.set(host, left);
  }
}
