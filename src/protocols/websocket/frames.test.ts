/** Frames of whole messages compared with those of the ws package, and the borders of other frames. */

import { EventEmitter } from "node:events";
import { describe, expect, it } from "vitest";
import * as ws from "ws";
import { Random } from "../../core/base/random.ts";
import { FrameBorders, messageFrame, readMessages } from "./frames.ts";

/** Exported by the package, but missing in its types. */
const { Receiver, Sender } = ws as unknown as {
  readonly Receiver: new (
    options: object,
  ) => {
    on(event: "message", received: (data: Buffer, isBinary: boolean) => void): void;
    write(bytes: Uint8Array): void;
  };
  readonly Sender: new (
    socket: object,
  ) => { send(payload: Buffer, options: object, sent: () => void): void };
};

interface Received {
  readonly text: string;
  readonly isBinary: boolean;
}

/** Decodes a frame with the package's server-side receiver. */
function readByPackage(frame: Uint8Array): Received[] {
  const received: Received[] = [];
  const receiver = new Receiver({ isServer: true });
  receiver.on("message", (data, isBinary) =>
    received.push({ text: data.toString("latin1"), isBinary }),
  );
  receiver.write(frame);
  return received;
}

/** A frame as the package sends it from a server. */
function sentByPackage(payload: Buffer, binary: boolean, fin = true): Buffer {
  const pieces: Buffer[] = [];
  const socket = Object.assign(new EventEmitter(), {
    cork: () => undefined,
    uncork: () => undefined,
    write: (piece: Buffer) => pieces.push(piece),
  });
  const options = { binary, compress: false, fin, mask: false };
  new Sender(socket).send(payload, options, () => undefined);
  return Buffer.concat(pieces);
}

function readHere(
  bytes: Buffer,
  bytesMax = 1_000_000,
): { readonly at: number; received: Received[] } {
  const received: Received[] = [];
  const message = (data: Buffer, isBinary: boolean) =>
    received.push({ text: data.toString("latin1"), isBinary });
  return { at: readMessages(bytes, bytes.length, bytesMax, { message, over: false }), received };
}

const LENGTHS = [0, 1, 5, 125, 126, 127, 1_000, 65_535];

describe("a sent message", () => {
  it.each(LENGTHS)("of %i characters is decoded by the package, as text and as bytes", (length) => {
    const ascii = "abcdefgh".repeat(length / 8 + 1).slice(0, length);
    expect(readByPackage(messageFrame(ascii) ?? Buffer.of())).toEqual([
      { text: ascii, isBinary: false },
    ]);
    expect(readByPackage(messageFrame(Buffer.from(ascii)) ?? Buffer.of())).toEqual([
      { text: ascii, isBinary: true },
    ]);
  });

  it("may contain any character", () => {
    const text = "from ASCII to ü, € and 𝄞";
    const expected = Buffer.from(text).toString("latin1");
    expect(readByPackage(messageFrame(text) ?? Buffer.of())).toEqual([
      { text: expected, isBinary: false },
    ]);
  });

  it("has another mask each time", () => {
    const masks = Array.from({ length: 5_000 }, () => messageFrame("")?.toString("hex", 2, 6));
    expect(new Set(masks).size).toBeGreaterThan(4_990);
  });

  it("is left to the package when its length needs eight bytes", () => {
    expect(messageFrame("x".repeat(65_536))).toBeNull();
    expect(messageFrame(Buffer.alloc(65_536))).toBeNull();
    expect(messageFrame("€".repeat(30_000))).toBeNull();
  });
});

describe("received messages", () => {
  it.each(LENGTHS)("of %i bytes are read, several in a row", (length) => {
    const payload = Buffer.alloc(length, "x");
    const bytes = Buffer.concat([sentByPackage(payload, false), sentByPackage(payload, true)]);
    const text = payload.toString();
    expect(readHere(bytes)).toEqual({
      at: bytes.length,
      received: [
        { text, isBinary: false },
        { text, isBinary: true },
      ],
    });
  });

  it("are left to the package from the first split one on, wherever that is", () => {
    const first = sentByPackage(Buffer.from("first"), false);
    const second = sentByPackage(Buffer.alloc(200, "x"), false);
    for (let cut = 0; cut < second.length; cut++) {
      const { at, received } = readHere(Buffer.concat([first, second.subarray(0, cut)]));
      expect([at, received.length]).toEqual([first.length, 1]);
    }
  });

  it.each([
    ["is a ping", Buffer.of(0x89, 0)],
    ["is a close", Buffer.of(0x88, 0)],
    ["goes on in another", Buffer.of(0x01, 1, 0x78)],
    ["continues another", Buffer.of(0x80, 1, 0x78)],
    ["is compressed", Buffer.of(0xc1, 1, 0x78)],
    ["is masked", Buffer.of(0x81, 0x81, 1, 2, 3, 4, 0x78)],
    ["is no UTF-8", Buffer.of(0x81, 1, 0xc3)],
    ["is too long", sentByPackage(Buffer.alloc(11), true)],
    ["has its length in eight bytes", Buffer.of(0x82, 127, 0, 0, 0, 0, 0, 0, 0, 1, 0x78)],
  ])("are left to the package from the first one that %s", (_what, frame) => {
    const first = sentByPackage(Buffer.from("first"), false);
    const { at, received } = readHere(Buffer.concat([first, frame]), 10);
    expect([at, received.length]).toEqual([first.length, 1]);
  });
});

describe("borders of frames", () => {
  it("are found wherever the bytes are split", () => {
    const random = new Random(15);
    const frames = [
      sentByPackage(Buffer.from("whole"), false),
      sentByPackage(Buffer.alloc(300), true),
      sentByPackage(Buffer.alloc(70_000), true),
      Buffer.of(0x89, 2, 1, 2),
      messageFrame("masked") ?? Buffer.of(),
    ];
    for (let round = 0; round < 200; round++) {
      const borders = new FrameBorders();
      const chosen = Array.from({ length: 4 }, () => frames[random.below(frames.length)]);
      const bytes = Buffer.concat(chosen.map((frame) => frame ?? Buffer.of()));
      const ends = new Set<number>([0]);
      let end = 0;
      for (const frame of chosen) {
        end += frame?.length ?? 0;
        ends.add(end);
      }
      for (let at = 0; at < bytes.length; ) {
        const next = Math.min(bytes.length, at + 1 + random.below(random.below(2) === 0 ? 8 : 999));
        borders.read(bytes.subarray(at, next));
        expect(borders.between).toBe(ends.has(next));
        at = next;
      }
    }
  });

  it("exclude those between the parts of a message, even around a ping", () => {
    const borders = new FrameBorders();
    borders.read(sentByPackage(Buffer.from("part"), false, false));
    expect(borders.between).toBe(false);
    borders.read(Buffer.of(0x89, 0));
    expect(borders.between).toBe(false);
    borders.read(Buffer.of(0x80, 0));
    expect(borders.between).toBe(true);
  });
});
