/** Log files on the real file system. */

import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { LineWriter } from "./line-writer.ts";
import { LOG_FILE_DEFAULTS, type LogFileOptions, RotatingFile } from "./rotating-file.ts";

let directory: string;
let path: string;
let problems: string[];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "hyperscale-log-"));
  path = join(directory, "logs", "node.log");
  problems = [];
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const open = (options: Partial<LogFileOptions> = {}): Promise<RotatingFile> =>
  RotatingFile.open({ ...LOG_FILE_DEFAULTS, path, ...options }, (problem) =>
    problems.push(problem),
  );

async function say(lines: LineWriter, ...texts: readonly string[]): Promise<void> {
  for (const text of texts) {
    lines.write(`${text}\n`);
    await lines.drained(5_000);
  }
}

const files = (): string[] => readdirSync(join(directory, "logs")).sort();
const text = (name: string): string => readFileSync(join(directory, "logs", name), "utf8");

describe("a log file", () => {
  it("is created with its folder, for its owner only, and continued where it ended", async () => {
    await say(new LineWriter(await open()), "one");
    await say(new LineWriter(await open()), "two");
    expect(text("node.log")).toBe("one\ntwo\n");
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it("is rotated before it exceeds its size, and the oldest are removed", async () => {
    const lines = new LineWriter(await open({ bytesMax: 20, filesMax: 2 }));
    for (let at = 0; at < 8; at++) {
      await say(lines, `line ${at} 78`);
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    const [now, ...aside] = files();
    expect(now).toBe("node.log");
    expect(aside).toHaveLength(2);
    expect(aside.map(text)).toEqual(["line 2 78\nline 3 78\n", "line 4 78\nline 5 78\n"]);
    expect(text("node.log")).toBe("line 6 78\nline 7 78\n");
  });

  it("is rotated by age; old rotated files are removed, and no other files", async () => {
    const lines = new LineWriter(await open({ ageMsMax: 1, keepMsMax: 86_400_000 }));
    writeFileSync(`${path}.2020-01-01T00-00-00-000Z`, "long ago");
    writeFileSync(`${path}.mine`, "of somebody else");
    await say(lines, "one");
    await new Promise((resolve) => setTimeout(resolve, 5));
    await say(lines, "two");
    expect(files()).toHaveLength(3);
    expect(files()).toContain("node.log.mine");
    expect(text("node.log")).toBe("two\n");
  });

  it("fails to open an unusable file", async () => {
    path = join(directory, "a-file", "node.log");
    writeFileSync(join(directory, "a-file"), "");
    await expect(open()).rejects.toThrow();
  });

  it.skipIf(!existsSync("/dev/full"))(
    "drops and counts lines while the disk is full, says so once, and continues afterwards",
    async () => {
      mkdirSync(join(directory, "logs"));
      symlinkSync("/dev/full", path);
      // Opening works on a full disk, writing does not.
      const lines = new LineWriter(await open());
      await say(lines, "lost 1", "lost 2", "lost 3");
      expect(lines.dropped).toBe(3);
      expect(problems).toHaveLength(1);
      expect(problems[0]).toMatch(/ENOSPC/);
      unlinkSync(path);
      // The disk is not retried for a second; lines until then are lost, too.
      let written = "";
      while (!written.includes("kept")) {
        await say(lines, "kept");
        await new Promise((resolve) => setTimeout(resolve, 50));
        written = existsSync(path) ? readFileSync(path, "utf8") : "";
      }
      const [note, first] = written.split("\n");
      expect(JSON.parse(note ?? "")).toEqual({ event: "lines-dropped", count: lines.dropped });
      expect(first).toBe("kept");
      expect(problems).toHaveLength(1);
    },
  );
});
