/** Responses that wait for their phase of the turn: each call finishes once, with the outcome of its response. */

import net from "node:net";
import { describe, expect, it } from "vitest";
import { turn } from "../net/turn.ts";
import { perform, TestSession } from "../testing/session.ts";
import type { CarriedCall, Connection, ConnectionHost } from "./connection.ts";
import { DescribedCall } from "./described-call.ts";
import { StreamSocket } from "./stream-socket.ts";
import { Target, type TargetProtocol } from "./target.ts";

type Connect = (host: ConnectionHost, now: number) => Connection<string>;

const PROTOCOL: TargetProtocol = {
  name: "test",
  schemes: { test: { port: 1, secure: false } },
  optionNames: [],
};

/** One call on a connection, which opens and answers as scripted. */
function called(connect: Connect, port = 1) {
  const target = new Target(PROTOCOL, `test://127.0.0.1:${port}`, {}, connect);
  return new DescribedCall(target, { command: "ask", title: "ask", decode: String });
}

/** Opens at once, and handles a call with `send`. */
function connection(host: ConnectionHost, now: number, send: Connection<string>["send"]) {
  queueMicrotask(() => host.opened({ connectMs: 0, tlsMs: -1, loginMs: -1 }, now));
  return { send, destroy: () => undefined };
}

function loopTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** The first responses of a turn, which the others follow. */
async function readingTurn(): Promise<void> {
  while (!turn.reading) {
    await loopTurn();
    turn.answered();
  }
}

describe("a call whose response waits for its phase of the turn", () => {
  it("succeeds even if the connection is lost afterwards", async () => {
    const ask = called((host, opened) =>
      connection(host, opened, (call, now) => {
        setImmediate(() => {
          void readingTurn().then(() => {
            call.answered("yes", now);
            host.lost({ kind: "reset", text: "the server closed the connection" }, now);
          });
        });
      }),
    );
    const result = await perform(ask);
    expect(result.error).toBeNull();
    expect(result.value).toBe("yes");
  });

  it("is not reported when its user stops first", async () => {
    const session = new TestSession();
    let ended = 0;
    const ask = called((host, opened) =>
      connection(host, opened, (call, now) => {
        setImmediate(() => {
          void readingTurn().then(() => {
            call.answered("yes", now);
            session.close();
          });
        });
      }),
    );
    await ask.prepare();
    ask.bind(session, true, { callFinished: () => ended++ }).start(0);
    while (!session.closed) await loopTurn();
    for (let turns = 0; turns < 3; turns++) await loopTurn();
    expect(ended).toBe(0);
  });
});

/** Sends its message in several pieces within one turn. */
class Speaker implements Connection<string> {
  readonly #host: ConnectionHost;
  readonly #socket: StreamSocket;
  #call: CarriedCall<string> | null = null;

  constructor(host: ConnectionHost, now: number) {
    this.#host = host;
    this.#socket = new StreamSocket(host, this, now);
  }

  streamOpen(now: number): void {
    this.#host.opened(this.#socket.times(now), now);
  }

  send(call: CarriedCall<string>): void {
    this.#call = call;
    void readingTurn().then(() => {
      this.#socket.write(Buffer.from("one "));
      expect(this.#socket.waitingBytes).toBe(4);
      this.#socket.write(Buffer.from("two "));
      this.#socket.write(Buffer.from("three "), () => undefined);
      this.#socket.write(Buffer.from("four."));
      expect(this.#socket.waitingBytes).toBe(19);
    });
  }

  streamBytes(buffer: Buffer, end: number, now: number): void {
    this.#call?.answered(buffer.toString("utf8", 0, end), now);
  }

  streamEnded(): void {}

  destroy(): void {
    this.#socket.destroy();
  }
}

describe("pieces that are written in one turn", () => {
  it("are combined, in order", async () => {
    const server = net.createServer((socket) => {
      socket.on("data", (piece) => socket.end(`heard ${piece}`));
      socket.on("error", () => undefined);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as net.AddressInfo;
    const result = await perform(called((host, now) => new Speaker(host, now), port));
    expect(result.value).toBe("heard one two three four.");
    server.close();
  });
});
