/**
 * Connection slots of a server, by address. Unauthenticated connections keep a slot only until it is needed: when an
 * address, or the whole server, has none left, the oldest connection without a valid token is closed for the new one. A
 * health check therefore gets in, however many unfinished requests a client keeps open.
 */

interface AdmissionLimits {
  readonly connectionsMax: number;
  readonly connectionsPerAddressMax: number;
}

/** Identity of a connection: TLS wraps the admitted socket. */
interface Peer {
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
}

interface Closable extends Peer {
  destroy(): unknown;
  once(event: "close", listener: () => void): unknown;
}

export class Admission {
  readonly #limits: AdmissionLimits;
  readonly #byAddress = new Map<string, number>();
  /** In order of arrival. */
  readonly #unproven = new Map<string, Closable>();
  #open = 0;

  constructor(limits: AdmissionLimits) {
    this.#limits = limits;
  }

  admit(socket: Closable): void {
    const address = socket.remoteAddress ?? "";
    const isFull = (this.#byAddress.get(address) ?? 0) >= this.#limits.connectionsPerAddressMax;
    if (
      (isFull || this.#open >= this.#limits.connectionsMax) &&
      !this.#evict(isFull ? address : null)
    ) {
      socket.destroy();
      return;
    }
    const key = keyOf(socket);
    this.#open++;
    this.#byAddress.set(address, (this.#byAddress.get(address) ?? 0) + 1);
    this.#unproven.set(key, socket);
    socket.once("close", () => {
      this.#open--;
      const left = (this.#byAddress.get(address) ?? 1) - 1;
      if (left === 0) this.#byAddress.delete(address);
      else this.#byAddress.set(address, left);
      if (this.#unproven.get(key) === socket) this.#unproven.delete(key);
    });
  }

  /** A request on this connection had a valid token: it keeps its slot. */
  proved(peer: Peer): void {
    this.#unproven.delete(keyOf(peer));
  }

  /** Closes the oldest connection without a token, of an address or of all; returns false when there is none. */
  #evict(address: string | null): boolean {
    for (const [key, socket] of this.#unproven) {
      if (address !== null && (socket.remoteAddress ?? addressOf(key)) !== address) continue;
      this.#unproven.delete(key);
      socket.destroy();
      return true;
    }
    return false;
  }
}

function keyOf({ remoteAddress, remotePort }: Peer): string {
  return `${remoteAddress ?? ""} ${remotePort ?? 0}`;
}

function addressOf(key: string): string {
  return key.slice(0, key.lastIndexOf(" "));
}
