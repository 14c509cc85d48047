/** Directories that a log must reject: the problem is named, and not a byte on disk is changed. */

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { identityOf } from "../../../src/core/ledger/log/segment.ts";
import { Wal } from "../../../src/ledger/log/wal.ts";
import { isRoot, NO_MOUNT, needs } from "../../needs.ts";

const identity = identityOf("prod", "gate-1");
const directories: string[] = [];
afterEach(async () => {
  for (const path of directories.splice(0)) {
    spawnSync("umount", [path]);
    await rm(path, { recursive: true, force: true });
  }
});

/** A log with three entries in two segments. */
async function log(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "hyperscale-wal-bad-"));
  directories.push(directory);
  const wal = await Wal.open({ directory, identity, config: { segmentBytes: 2_048 } });
  for (let i = 0; i < 3; i++) await wal.append(64, Buffer.alloc(800, i));
  await wal.close();
  return directory;
}

async function fingerprint(directory: string): Promise<string> {
  const hash = createHash("sha256");
  for (const name of (await readdir(directory)).sort()) {
    const { mtimeMs, size } = await stat(join(directory, name));
    hash.update(`${name} ${mtimeMs} ${size}\n`).update(await readFile(join(directory, name)));
  }
  return hash.digest("hex");
}

async function refusal(directory: string, who = identity): Promise<string> {
  const before = await fingerprint(directory);
  const error = await Wal.open({ directory, identity: who, config: { segmentBytes: 2_048 } }).then(
    () => new Error("it opened"),
    (reason: unknown) => (reason instanceof Error ? reason : new Error(String(reason))),
  );
  expect(await fingerprint(directory)).toBe(before);
  return error.message;
}

async function patch(directory: string, name: string, at: number, value: number): Promise<void> {
  const bytes = await readFile(join(directory, name));
  bytes[at] = value;
  await writeFile(join(directory, name), bytes);
}

describe("a log rejects, and changes nothing", () => {
  it("another format version", async () => {
    const directory = await log();
    await patch(directory, "segment_00000002.wal", 4, 2);
    expect(await refusal(directory)).toContain("segment_00000002.wal has format version 2");
  });

  it("a foreign file beside the segments", async () => {
    const directory = await log();
    await writeFile(join(directory, "holiday.jpg"), "not a log");
    expect(await refusal(directory)).toMatch(/holiday\.jpg is no file of a write-ahead log.*move/);
  });

  it("a foreign file under a segment's name", async () => {
    const directory = await log();
    await writeFile(join(directory, "segment_00000003.wal"), "GIF89a".repeat(400));
    expect(await refusal(directory)).toContain("segment_00000003.wal is not a segment of this log");
  });

  it("a segment that was renamed", async () => {
    const directory = await log();
    const copy = await readFile(join(directory, "segment_00000002.wal"));
    await writeFile(join(directory, "segment_00000004.wal"), copy);
    expect(await refusal(directory)).toContain("its header says segment 2");
  });

  it("the log of another cluster or node", async () => {
    const directory = await log();
    const message = await refusal(directory, identityOf("staging", "gate-1"));
    expect(message).toContain("belongs to another cluster or node");
    expect(message).toContain(identity);
  });

  it("corruption below something acknowledged", async () => {
    const directory = await log();
    await patch(directory, "segment_00000001.wal", 200, 0xff);
    expect(await refusal(directory)).toMatch(/corrupt at offset 32 .*hyperscale wal verify/);
  });

  it("a file where the directory should be", async () => {
    const directory = await log();
    const path = join(directory, "segment_00000001.wal");
    await expect(Wal.open({ directory: path, identity })).rejects.toThrow("is not a directory");
  });

  it("a directory that may not be written", needs(!isRoot, "root may write anywhere"), async () => {
    const directory = await log();
    await chmod(directory, 0o500);
    expect(await refusal(directory)).toContain("cannot be written (EACCES)");
    await chmod(directory, 0o700);
  });

  const scratch = spawnSync("mktemp", ["-d"]).stdout.toString().trim();
  const mayMount =
    isRoot &&
    spawnSync("mount", ["-t", "tmpfs", "-o", "size=1m", "wal-probe", scratch]).status === 0;
  if (mayMount) spawnSync("umount", [scratch]);
  spawnSync("rmdir", [scratch]);
  it("a disk that is mounted read-only", needs(mayMount, NO_MOUNT), async () => {
    const source = await log();
    const mount = await mkdtemp(join(tmpdir(), "hyperscale-wal-ro-"));
    directories.push(mount);
    spawnSync("mount", ["-t", "tmpfs", "-o", "size=1m", "wal-read-only", mount]);
    spawnSync("cp", ["-a", `${source}/.`, mount]);
    spawnSync("mount", ["-o", "remount,ro", mount]);
    expect(await refusal(mount)).toContain("cannot be written (EROFS)");
  });
});
