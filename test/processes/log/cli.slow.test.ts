/** `hyperscale wal …` as an operator calls it: the built command, exit codes, and not a byte changed. */

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { Checkpoints } from "../../../src/core/ledger/log/checkpoints.ts";
import { identityOf } from "../../../src/core/ledger/log/segment.ts";
import { carryOut } from "../../../src/ledger/log/file-executor.ts";
import { Wal } from "../../../src/ledger/log/wal.ts";

const bin = fileURLToPath(new URL("../../../bin/hyperscale.js", import.meta.url));
const identity = identityOf("prod", "gate-1");
const directories: string[] = [];
afterEach(() => {
  for (const path of directories.splice(0)) rmSync(path, { recursive: true, force: true });
});

async function makeLog(): Promise<{ readonly directory: string; readonly lastBatch: number }> {
  const directory = mkdtempSync(join(tmpdir(), "hyperscale-wal-cli-"));
  directories.push(directory);
  const log = await Wal.open({ directory, identity, config: { segmentBytes: 4_096 } });
  for (let i = 0; i < 60; i++) await log.append(i % 2 === 0 ? 65 : 64, Buffer.from(`entry ${i}`));
  const { offset } = log.status();
  await log.close();
  const options = { directory: "", identity, keptMax: 3, onDamaged: () => {} };
  const checkpoints = new Checkpoints(options);
  await carryOut(directory, checkpoints.begin(50));
  await carryOut(directory, checkpoints.add({ lsn: 50, payload: Buffer.from("snapshot") }));
  await carryOut(directory, checkpoints.commit(Date.now()));
  return { directory, lastBatch: offset };
}

function fingerprint(directory: string): string {
  const hash = createHash("sha256");
  for (const name of readdirSync(directory).sort()) {
    hash.update(name).update(readFileSync(join(directory, name)));
  }
  return hash.digest("hex");
}

function run(...args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [bin, "wal", ...args], {
    encoding: "utf8",
  });
  return { status, stdout, stderr };
}

function damage(directory: string, name: string, at: number, length: number): void {
  const bytes = readFileSync(join(directory, name));
  bytes.fill(0xee, at, at + length);
  writeFileSync(join(directory, name), bytes);
}

const lastSegment = (directory: string): string =>
  readdirSync(directory)
    .filter((name) => name.endsWith(".wal"))
    .sort()
    .at(-1) ?? "";

describe("hyperscale wal", () => {
  it("calls a whole log sound and shows what is in it", async () => {
    const { directory } = await makeLog();
    const before = fingerprint(directory);
    const verify = run("verify", directory);
    expect(verify.status).toBe(0);
    expect(verify.stdout).toContain(": sound");
    expect(verify.stdout).toContain("60 entries checked");
    const inspect = run("inspect", directory);
    for (const word of ["VSR_VIEW_PROMISE", "VSR_ENTRY", "sealed", "active", identity, "intact"]) {
      expect(inspect.stdout).toContain(word);
    }
    const json: unknown = JSON.parse(run("inspect", directory, "--json").stdout);
    expect(json).toMatchObject({ verdict: "sound", entries: 60 });
    expect(fingerprint(directory)).toBe(before);
  });

  it("dumps records as lines or objects, from any number on, filtered", async () => {
    const { directory } = await makeLog();
    const dump = run("dump", directory, "--from", "3", "--limit", "2", "--payload", "text");
    expect(dump.stdout.trim().split("\n")).toHaveLength(2);
    expect(dump.stdout).toContain("entry 1");
    const lines = run("dump", directory, "--json", "--type", "VSR_VIEW_PROMISE")
      .stdout.trim()
      .split("\n");
    expect(lines).toHaveLength(30);
    const first = JSON.parse(lines[0] ?? "{}") as { payload: string; lsn: number };
    expect([first.lsn, Buffer.from(first.payload, "base64").toString()]).toEqual([1, "entry 0"]);
  });

  it("calls a torn tail sound, reports it, and leaves it", async () => {
    const { directory, lastBatch } = await makeLog();
    damage(directory, lastSegment(directory), lastBatch + 10, 30);
    const before = fingerprint(directory);
    const verify = run("verify", directory);
    expect(verify.status).toBe(0);
    expect(verify.stdout).toContain("torn tail (nothing acknowledged is missing)");
    const dump = run("dump", directory);
    expect(dump.status).toBe(0);
    expect(dump.stderr).toContain("torn tail");
    expect(fingerprint(directory)).toBe(before);
  });

  it("calls damage below an acknowledged entry corrupt, with exit code 1", async () => {
    const { directory } = await makeLog();
    damage(directory, "segment_00000001.wal", 500, 1);
    const before = fingerprint(directory);
    const verify = run("verify", directory);
    expect(verify.status).toBe(1);
    expect(verify.stdout).toMatch(/CORRUPT\n.*segment_00000001\.wal is corrupt at offset \d+/);
    expect(run("dump", directory).status).toBe(1);
    expect(JSON.parse(run("verify", directory, "--json").stdout)).toMatchObject({
      verdict: "corrupt",
    });
    expect(fingerprint(directory)).toBe(before);
  });

  it("rejects foreign files, and names damaged checkpoints", async () => {
    const { directory } = await makeLog();
    const [checkpoint = ""] = readdirSync(directory).filter((name) => name.endsWith(".ckpt"));
    damage(directory, checkpoint, 100, 2);
    expect(run("verify", directory).stdout).toContain(`${checkpoint}: damaged payload`);
    writeFileSync(join(directory, "notes.txt"), "mine");
    const verify = run("verify", directory);
    expect([verify.status, verify.stdout.includes("notes.txt")]).toEqual([1, true]);
  });

  it("answers wrong usage with exit code 2", () => {
    expect(run("verify", "/nowhere/at/all")).toMatchObject({ status: 2 });
    expect(run("verify", "/nowhere/at/all").stderr).toContain("does not exist");
    expect(run("dump", tmpdir(), "--from", "zero").status).toBe(2);
    expect(run("frobnicate").status).toBe(2);
    expect(run("verify").status).toBe(2);
  });
});
