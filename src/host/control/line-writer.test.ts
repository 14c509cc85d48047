import { execFileSync } from "node:child_process";
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it, vi } from "vitest";
import { Descriptor, LineWriter } from "./line-writer.ts";

const directory = mkdtempSync(join(tmpdir(), "hyperscale-lines-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));
let count = 0;

/** Both ends of a pipe; the kernel buffers 64 KiB before a writer has to wait. */
function pipe(): { readonly reader: number; readonly writer: number } {
  const file = join(directory, `pipe${++count}`);
  execFileSync("mkfifo", [file]);
  const reader = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
  const writer = openSync(file, constants.O_WRONLY | constants.O_NONBLOCK);
  return { reader, writer };
}

function readAll(fd: number): string {
  const buffer = Buffer.alloc(1_048_576);
  let text = "";
  for (;;) {
    try {
      const got = readSync(fd, buffer);
      if (got === 0) return text;
      text += buffer.toString("utf8", 0, got);
    } catch {
      return text;
    }
  }
}

const turn = (ms = 0): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe("a line writer", () => {
  it("never waits for a stalled reader, drops beyond its bound, and continues later", async () => {
    const { reader, writer } = pipe();
    const lines = new LineWriter(new Descriptor(writer), 200_000);
    for (let i = 0; i < 10_000; i++) {
      lines.write(`${i} ${"x".repeat(50)}\n`);
      if (i % 1_000 === 0) await turn();
    }
    expect(lines.dropped).toBeGreaterThan(1_000);
    let text = "";
    for (let i = 0; i < 20; i++) {
      text += readAll(reader);
      await turn(10);
    }
    lines.write("last\n");
    await turn(50);
    text += readAll(reader);
    const numbers = text.trim().split("\n");
    expect(numbers.at(-1)).toBe("last");
    const reported = numbers.filter((line) => line.includes("lines-dropped"));
    const counted = reported.map((line) => (JSON.parse(line) as { count: number }).count);
    expect(counted.reduce((sum, count) => sum + count, 0)).toBe(lines.dropped);
    expect(numbers.length - reported.length + lines.dropped).toBe(10_001);
    closeSync(reader);
    closeSync(writer);
  });

  it("survives the end of its reader", async () => {
    const { reader, writer } = pipe();
    const lines = new LineWriter(new Descriptor(writer));
    closeSync(reader);
    lines.write("to nobody\n");
    await vi.waitFor(() => {
      lines.write("still to nobody\n");
      expect(lines.dropped).toBe(1);
    }, 10_000);
    closeSync(writer);
  });

  it("reports when everything was written, each line once", async () => {
    const { reader, writer } = pipe();
    const lines = new LineWriter(new Descriptor(writer));
    lines.write("first\n");
    lines.write("second\n");
    await lines.drained(1_000);
    expect(readAll(reader)).toBe("first\nsecond\n");
    closeSync(reader);
    closeSync(writer);
  });
});
