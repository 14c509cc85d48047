import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type FrameEvent, FrameReader, frame, PROBE } from "./frame.ts";

function concat(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

function readAll(reader: FrameReader, stream: Uint8Array, cuts: readonly number[]): FrameEvent[] {
  const borders = [0, ...cuts.map((cut) => cut % (stream.length + 1)), stream.length];
  borders.sort((a, b) => a - b);
  return borders.flatMap((end, i) => [...reader.push(stream.subarray(borders[i - 1] ?? 0, end))]);
}

describe("frames", () => {
  it("come out the same however the stream is cut (FRAME-1, FRAME-3, FRAME-4)", () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ minLength: 1, maxLength: 60 }), { maxLength: 10 }),
        fc.array(fc.nat(), { maxLength: 40 }),
        (payloads, cuts) => {
          const stream = concat(payloads.map((payload) => frame(payload)));
          const reader = new FrameReader();
          expect(readAll(reader, stream, cuts)).toEqual(
            payloads.map((payload) => ({ kind: "frame", payload })),
          );
          expect(reader.midFrame).toBe(false);
        },
      ),
    );
  });

  // FRAME-5, FRAME-6
  it("of length zero or beyond the maximum are refused at their prefix, and nothing after is read", () => {
    for (const prefix of [
      [0, 0, 0, 0],
      [0xff, 0xff, 0xff, 0xff],
      [0, 0x10, 0, 1],
    ]) {
      const reader = new FrameReader();
      const events = reader.push(Uint8Array.of(...prefix, 1, 2, 3));
      expect(events.map(({ kind }) => kind)).toEqual(["refused"]);
      expect(reader.push(frame(Uint8Array.of(1)))).toEqual([]);
    }
  });

  it("of another protocol at the start of a connection are named so, later ones by their length", () => {
    const problemsOf = (...bytes: readonly number[]): readonly string[] =>
      new FrameReader()
        .push(Uint8Array.from(bytes))
        .flatMap((event) => (event.kind === "refused" ? [event.problem] : []));
    const other = "something else than Hyperscale is there: it began with";
    expect(problemsOf(...Buffer.from("SSH-2.0"))).toEqual([`${other} "SSH-"`]);
    expect(problemsOf(0x15, 3, 1, 0)).toEqual([`${other} the bytes 15 03 01 00`]);
    const later = concat([frame(Uint8Array.of(1)), Uint8Array.of(0, 0x10, 0, 1)]);
    expect(problemsOf(...later)).toEqual(["a frame of 1048577 bytes; 1 to 1048576 are allowed"]);
  });

  it("are refused by the sender when they are too large (SEC-10)", () => {
    expect(() => frame(new Uint8Array(1_048_577))).toThrow("invariant");
    expect(frame(new Uint8Array(1_048_576))).toHaveLength(1_048_580);
  });

  it("share the port with a probe at the start of a connection, and only there (BOOT-3)", () => {
    expect(new FrameReader().push(PROBE)).toEqual([{ kind: "probe" }]);
    const reader = new FrameReader();
    const events = reader.push(concat([frame(Uint8Array.of(1)), PROBE]));
    expect(events.map(({ kind }) => kind)).toEqual(["frame", "refused"]);
  });
});
