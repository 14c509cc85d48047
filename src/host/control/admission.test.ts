import { EventEmitter } from "node:events";
import { describe, expect, it } from "vitest";
import { Admission } from "./admission.ts";

class FakeSocket extends EventEmitter {
  readonly remoteAddress: string;
  readonly remotePort: number;
  closed = false;

  constructor(remoteAddress: string, remotePort: number) {
    super();
    this.remoteAddress = remoteAddress;
    this.remotePort = remotePort;
  }

  destroy(): void {
    if (this.closed) return;
    this.closed = true;
    this.emit("close");
  }
}

describe("connection slots of a server", () => {
  let port = 0;
  const come = (admission: Admission, address: string): FakeSocket => {
    const socket = new FakeSocket(address, ++port);
    admission.admit(socket);
    return socket;
  };

  it("go to a new connection when unauthenticated ones of its address use all of them", () => {
    const admission = new Admission({ connectionsMax: 100, connectionsPerAddressMax: 3 });
    const strangers = Array.from({ length: 5 }, () => come(admission, "10.0.0.1"));
    expect(strangers.map(({ closed }) => closed)).toEqual([true, true, false, false, false]);
    const check = come(admission, "10.0.0.1");
    expect([check.closed, strangers[2]?.closed]).toEqual([false, true]);
  });

  it("stay with authenticated connections; a further one is rejected", () => {
    const admission = new Admission({ connectionsMax: 100, connectionsPerAddressMax: 2 });
    const workers = [come(admission, "10.0.0.1"), come(admission, "10.0.0.1")];
    // TLS: another object for the same connection.
    for (const { remoteAddress, remotePort } of workers)
      admission.proved({ remoteAddress, remotePort });
    expect(come(admission, "10.0.0.1").closed).toBe(true);
    expect(come(admission, "10.0.0.2").closed).toBe(false);
    expect(workers.some(({ closed }) => closed)).toBe(false);
    workers[0]?.destroy();
    expect(come(admission, "10.0.0.1").closed).toBe(false);
  });

  it("are taken from unauthenticated connections of any address when the whole server is full", () => {
    const admission = new Admission({ connectionsMax: 4, connectionsPerAddressMax: 3 });
    const strangers = ["a", "a", "b", "b"].map((address) => come(admission, address));
    expect(come(admission, "c").closed).toBe(false);
    expect(strangers.map(({ closed }) => closed)).toEqual([true, false, false, false]);
  });
});
