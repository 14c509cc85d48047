/** Where members live, by name and by host. */

import type { Address, NodeId } from "../../core/base/ids.ts";
import { hostOf } from "../../wire/address.ts";

export class Addresses {
  readonly #byId = new Map<NodeId, Address>();
  /** How many members live on each host. */
  readonly #hosts = new Map<string, number>();

  get(id: NodeId): Address | undefined {
    return this.#byId.get(id);
  }

  set(id: NodeId, address: Address): void {
    if (this.#byId.get(id) === address) return;
    this.delete(id);
    this.#byId.set(id, address);
    const host = hostOf(address);
    this.#hosts.set(host, (this.#hosts.get(host) ?? 0) + 1);
  }

  delete(id: NodeId): void {
    const address = this.#byId.get(id);
    if (address === undefined) return;
    this.#byId.delete(id);
    const host = hostOf(address);
    const left = (this.#hosts.get(host) ?? 1) - 1;
    if (left === 0) this.#hosts.delete(host);
    else this.#hosts.set(host, left);
  }

  hasHost(host: string): boolean {
    return this.#hosts.has(host);
  }
}
