/** The session in memory: handwritten frames, split anywhere, and hostile servers. */

import { describe, expect, it } from "vitest";
import { Random } from "../../core/base/random.ts";
import type { Failure } from "../errors.ts";
import * as f from "./frames.ts";
import type { HeaderList } from "./hpack/header-list.ts";
import { IDLE_FRAMES_MAX, RECEIVE_WINDOW_BYTES } from "./limits.ts";
import { Http2Session, type SessionOwner } from "./session.ts";
import type { Http2Stream, StreamListener } from "./stream.ts";

const GET = {
  constant: {
    pseudo: [
      [":method", "GET"],
      [":scheme", "http"],
      [":authority", "a.test"],
    ] as const,
    rest: [],
  },
  path: "/",
  cookies: "",
  traceparent: "",
  isHead: false,
};
const STATUS_200 = Buffer.from([0x88]);
const SETTINGS = f.settingsFrame([]);

function frame(type: number, flags: number, stream: number, payload: Uint8Array = NONE): Buffer {
  const bytes = f.frame(type, flags, stream, payload.length);
  bytes.set(payload, f.FRAME_HEAD_BYTES);
  return bytes;
}
const NONE = new Uint8Array(0);

function literal(name: string, value: string): Buffer {
  const [n, v] = [Buffer.from(name), Buffer.from(value)];
  return Buffer.concat([Buffer.from([0, n.length]), n, Buffer.from([v.length]), v]);
}

/** Records all events of a stream as text. */
class Recorder implements StreamListener {
  readonly events: string[] = [];
  body = "";

  headersCame(headers: HeaderList): void {
    this.events.push(`${headers.status}`);
  }
  contentCame(bytes: Buffer, from: number, end: number): void {
    this.body += bytes.toString("latin1", from, end);
  }
  trailersCame(trailers: HeaderList): void {
    this.events.push(`trailers ${trailers.lines.join()}`);
  }
  streamEnded(): void {
    this.events.push("ended");
  }
  streamReset(code: number, unseen: boolean): void {
    this.events.push(`reset ${code}${unseen ? " unseen" : ""}`);
  }
  streamFailed({ kind, text }: Failure): void {
    this.events.push(`${kind}: ${text}`);
  }
}

class Peer implements SessionOwner {
  readonly written: Buffer[] = [];
  readonly session: Http2Session;
  failure: Failure | null = null;
  goneAway = false;
  full = false;

  constructor() {
    this.session = new Http2Session(this);
  }
  write(bytes: Buffer): boolean {
    this.written.push(bytes);
    return !this.full;
  }
  settingsCame(): void {}
  goingAway(): void {
    this.goneAway = true;
  }
  sessionFailed(failure: Failure): void {
    this.failure ??= failure;
    this.session.fail(failure);
  }

  open(body: Uint8Array | "later" | null = null): { recorder: Recorder; stream: Http2Stream } {
    const recorder = new Recorder();
    return { recorder, stream: this.session.request(GET, body, recorder) };
  }
  say(...frames: readonly Buffer[]): void {
    const bytes = Buffer.concat(frames);
    this.session.receive(bytes, 0, bytes.length);
  }

  /** Frames written so far, as type, stream and payload. */
  frames(): { type: number; flags: number; stream: number; payload: Buffer }[] {
    const bytes = Buffer.concat(this.written);
    const frames = [];
    let at = bytes.indexOf(f.PREFACE) === 0 ? f.PREFACE.length : 0;
    while (at < bytes.length) {
      const length = bytes.readUIntBE(at, 3);
      const payload = bytes.subarray(at + 9, at + 9 + length);
      const [type = 0, flags = 0] = [bytes[at + 3], bytes[at + 4]];
      frames.push({ type, flags, stream: bytes.readUInt32BE(at + 5), payload });
      at += 9 + length;
    }
    return frames;
  }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("frames", () => {
  it("mean the same wherever they are split", () => {
    const random = new Random(3);
    const answer = Buffer.concat([
      SETTINGS,
      frame(f.PING, 0, 0, Buffer.from("12345678")),
      frame(
        f.HEADERS,
        f.END_HEADERS,
        1,
        Buffer.concat([Buffer.from([0x08, 3]), Buffer.from("103")]),
      ),
      frame(f.HEADERS, 0, 1, STATUS_200),
      frame(f.CONTINUATION, f.END_HEADERS, 1, literal("x-a", "b")),
      frame(f.DATA, 0, 1, Buffer.from("hello ")),
      frame(0x77, 0, 0, Buffer.alloc(300)),
      frame(f.DATA, f.PADDED, 1, Buffer.from("\x03wor\0\0\0", "latin1")),
      frame(f.DATA, 0, 1, Buffer.from("ld")),
      frame(f.DATA, 0, 1),
      frame(f.HEADERS, f.END_HEADERS | f.END_STREAM, 1, literal("grpc-status", "0")),
    ]);
    for (let round = 0; round < 300; round++) {
      const peer = new Peer();
      const { recorder } = peer.open();
      for (let at = 0; at < answer.length; ) {
        const end = Math.min(answer.length, at + 1 + random.below(round < 100 ? 3 : 60));
        peer.session.receive(answer, at, end);
        at = end;
      }
      expect(recorder.events).toEqual(["200", "trailers grpc-status,0", "ended"]);
      expect(recorder.body).toBe("hello world");
      expect(peer.failure).toBeNull();
    }
  });

  it("are sent together, after the preface and the settings", async () => {
    const peer = new Peer();
    peer.open();
    peer.open(Buffer.from("body"));
    await turn();
    expect(peer.written).toHaveLength(1);
    const types = peer.frames().map(({ type, stream }) => `${type}/${stream}`);
    expect(types).toEqual(["4/0", "8/0", "1/1", "1/3", "0/3"]);
  });
});

describe("content", () => {
  it("waits for the windows of stream and connection, and for the socket", async () => {
    const peer = new Peer();
    peer.say(f.settingsFrame([[f.INITIAL_WINDOW_SIZE, 10]]));
    const { stream } = peer.open("later");
    expect(peer.session.sendPiece(stream, Buffer.alloc(25, 1))).toBe(false);
    await turn();
    const sent = (): number =>
      peer
        .frames()
        .filter(({ type }) => type === f.DATA)
        .reduce((sum, { payload }) => sum + payload.length, 0);
    expect(sent()).toBe(10);
    peer.say(f.numberFrame(f.WINDOW_UPDATE, 1, 8));
    expect(sent()).toBe(18);
    peer.full = true;
    peer.say(f.settingsFrame([[f.INITIAL_WINDOW_SIZE, 14]]));
    expect(sent()).toBe(22);
    let drained = false;
    stream.onDrained = () => {
      drained = true;
    };
    peer.say(f.numberFrame(f.WINDOW_UPDATE, 1, 100));
    expect([sent(), drained]).toEqual([22, false]);
    peer.full = false;
    peer.session.resume();
    await turn();
    expect([sent(), drained]).toEqual([25, true]);
    peer.session.endContent(stream);
    await turn();
    expect(peer.frames().at(-1)).toMatchObject({ type: f.DATA, flags: f.END_STREAM, stream: 1 });
  });

  it("of a response is acknowledged before its window is used up", () => {
    const peer = new Peer();
    const { recorder } = peer.open();
    peer.say(SETTINGS, frame(f.HEADERS, f.END_HEADERS, 1, STATUS_200));
    const piece = frame(f.DATA, 0, 1, Buffer.alloc(16_384, 0x61));
    const pieces = (4 * RECEIVE_WINDOW_BYTES) / 16_384;
    for (let i = 0; i < pieces; i++) peer.say(piece);
    peer.say(frame(f.DATA, f.END_STREAM, 1));
    expect(peer.failure).toBeNull();
    expect(recorder.events).toEqual(["200", "ended"]);
    expect(recorder.body).toHaveLength(4 * RECEIVE_WINDOW_BYTES);
    const updates = peer.frames().filter(({ type }) => type === f.WINDOW_UPDATE);
    for (const id of [0, 1]) {
      const given = updates
        .filter(({ stream }) => stream === id)
        .reduce((sum, { payload }) => sum + payload.readUInt32BE(0), 0);
      expect(given).toBeGreaterThanOrEqual(3 * RECEIVE_WINDOW_BYTES);
    }
  });

  it("of another length than announced is a failure", () => {
    const peer = new Peer();
    const { recorder } = peer.open();
    const head = Buffer.concat([STATUS_200, literal("content-length", "5")]);
    peer.say(SETTINGS, frame(f.HEADERS, f.END_HEADERS, 1, head));
    peer.say(frame(f.DATA, f.END_STREAM, 1, Buffer.from("four")));
    expect(recorder.events[1]).toMatch(/^protocol: .*4 bytes of content where 5 were announced/);
    expect(peer.failure).toBeNull();
  });
});

describe("a stream", () => {
  it("that is abandoned is reset, and its response is discarded", async () => {
    const peer = new Peer();
    const { recorder, stream } = peer.open();
    peer.say(SETTINGS);
    peer.session.letGo(stream, f.CANCEL);
    await turn();
    expect(peer.frames().at(-1)).toMatchObject({ type: f.RST_STREAM, stream: 1 });
    peer.say(frame(f.HEADERS, f.END_HEADERS, 1, STATUS_200));
    peer.say(
      frame(f.DATA, f.END_STREAM, 1, Buffer.from("late")),
      f.numberFrame(f.RST_STREAM, 1, 0),
    );
    expect(recorder.events).toEqual([]);
    expect(peer.failure).toBeNull();
  });

  it("beyond the last one named by a GOAWAY was not processed", () => {
    const peer = new Peer();
    const [first, second] = [peer.open(), peer.open()];
    const goaway = f.goawayFrame(f.NO_ERROR);
    goaway.writeUInt32BE(1, f.FRAME_HEAD_BYTES);
    peer.say(SETTINGS, goaway);
    expect(second.recorder.events).toEqual([`reset ${f.REFUSED_STREAM} unseen`]);
    expect([peer.goneAway, peer.session.usable]).toEqual([true, false]);
    peer.say(frame(f.HEADERS, f.END_HEADERS | f.END_STREAM, 1, STATUS_200));
    expect(first.recorder.events).toEqual(["200", "ended"]);
  });
});

describe("a server that refuses every call", () => {
  it("is within the protocol, however often it does", () => {
    const peer = new Peer();
    peer.say(SETTINGS);
    for (let i = 0; i < 2 * IDLE_FRAMES_MAX; i++) {
      const { recorder, stream } = peer.open();
      peer.say(f.numberFrame(f.RST_STREAM, stream.id, f.REFUSED_STREAM));
      expect(recorder.events).toEqual([`reset ${f.REFUSED_STREAM}`]);
    }
    expect(peer.failure).toBeNull();
  });
});

describe("a server that violates the protocol", () => {
  const headers = frame(f.HEADERS, f.END_HEADERS, 1, STATUS_200);
  const cases: [string, Buffer[]][] = [
    ["does not begin with settings", [frame(f.PING, 0, 0, Buffer.alloc(8))]],
    [
      "sends a frame that is too long",
      [SETTINGS, Buffer.from([0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1])],
    ],
    ["pushes", [SETTINGS, frame(f.PUSH_PROMISE, 4, 1, Buffer.from([0, 0, 0, 2, 0x88]))]],
    ["opens a window beyond its bound", [SETTINGS, f.numberFrame(f.WINDOW_UPDATE, 0, 2 ** 31 - 1)]],
    ["opens a window by nothing", [SETTINGS, f.numberFrame(f.WINDOW_UPDATE, 0, 0)]],
    ["makes first windows too large", [f.settingsFrame([[f.INITIAL_WINDOW_SIZE, 2 ** 31]])]],
    ["makes frames too small", [f.settingsFrame([[f.MAX_FRAME_SIZE, 1]])]],
    ["sends half a setting", [frame(f.SETTINGS, 0, 0, Buffer.alloc(5))]],
    ["answers what was not asked", [SETTINGS, frame(f.HEADERS, 4, 3, STATUS_200)]],
    ["answers on an even stream", [SETTINGS, frame(f.HEADERS, 4, 2, STATUS_200)]],
    ["sends content on an unknown stream", [SETTINGS, frame(f.DATA, 0, 5, Buffer.alloc(1))]],
    ["sends content before headers", [SETTINGS, frame(f.DATA, 0, 1, Buffer.alloc(1))]],
    [
      "goes on with headers that did not begin",
      [SETTINGS, frame(f.CONTINUATION, 4, 1, STATUS_200)],
    ],
    ["puts a frame inside headers", [SETTINGS, frame(f.HEADERS, 0, 1, STATUS_200), SETTINGS]],
    [
      "pads more than there is",
      [SETTINGS, headers, frame(f.DATA, f.PADDED, 1, Buffer.from([9, 1]))],
    ],
    [
      "pads headers more than there is",
      [SETTINGS, frame(f.HEADERS, 4 | 8, 1, Buffer.from([9, 1]))],
    ],
    ["sends a short reset", [SETTINGS, frame(f.RST_STREAM, 0, 1, Buffer.alloc(3))]],
    ["sends a short GOAWAY", [SETTINGS, frame(f.GOAWAY, 0, 0, Buffer.alloc(7))]],
    ["sends a short ping", [SETTINGS, frame(f.PING, 0, 0, Buffer.alloc(7))]],
    [
      "sends a header block that cannot be read",
      [SETTINGS, frame(f.HEADERS, 4, 1, Buffer.from([0x80]))],
    ],
  ];
  it.each(cases)("%s: closes the connection and fails the call", (_what, frames) => {
    const peer = new Peer();
    const { recorder } = peer.open();
    peer.say(...frames);
    expect(peer.failure?.kind).toBe("protocol");
    expect(recorder.events.at(-1)).toMatch(/^protocol: the server does not keep to HTTP\/2: /);
    expect(peer.frames().at(-1)?.type).toBe(f.GOAWAY);
  });

  const floods: [string, Buffer, Buffer[]][] = [
    ["settings", f.settingsFrame([[f.INITIAL_WINDOW_SIZE, 65_535]]), []],
    ["pings", frame(f.PING, 0, 0, Buffer.alloc(8)), []],
    ["empty content", frame(f.DATA, 0, 1), [headers]],
    ["empty continuations", frame(f.CONTINUATION, 0, 1), [frame(f.HEADERS, 0, 1, STATUS_200)]],
    ["continuations", frame(f.CONTINUATION, 0, 1, Buffer.alloc(9_000)), [frame(f.HEADERS, 0, 1)]],
    ["unknown frames", frame(0x77, 0, 0, Buffer.alloc(1_000)), []],
    ["priorities", frame(f.PRIORITY, 0, 1, Buffer.alloc(5)), []],
    ["resets of what is over", f.numberFrame(f.RST_STREAM, 1, 2), []],
    ["windows", f.numberFrame(f.WINDOW_UPDATE, 0, 1), []],
    ["informational answers", frame(f.HEADERS, 4, 1, Buffer.from([0x08, 3, 0x31, 0x30, 0x33])), []],
  ];
  it.each(floods)("floods with %s: is cut off at a limit", (_what, flood, before) => {
    const peer = new Peer();
    const { recorder } = peer.open();
    peer.say(SETTINGS, ...before);
    let sent = 0;
    while (
      peer.failure === null &&
      !recorder.events.some((event) => event.startsWith("protocol"))
    ) {
      peer.say(flood);
      expect(++sent).toBeLessThanOrEqual(IDLE_FRAMES_MAX + 2);
    }
    expect(Buffer.concat(peer.written).length).toBeLessThan(64 * IDLE_FRAMES_MAX);
  });

  it("sends random bytes: the session ends or continues, without other effects", () => {
    const random = new Random(11);
    for (let round = 0; round < 3_000; round++) {
      const peer = new Peer();
      peer.open();
      peer.open(Buffer.alloc(100));
      peer.say(SETTINGS);
      for (let i = 0; i < 12 && peer.failure === null; i++) {
        const payload = Buffer.from(
          Array.from({ length: random.below(24) }, () => random.below(256)),
        );
        peer.say(frame(random.below(11), random.below(256), random.below(6), payload));
      }
      expect([null, "protocol", "reset", "refused", "tls"]).toContain(peer.failure?.kind ?? null);
    }
  });
});
