/** `hyperscale audit` as an operator calls it: the built command, its exit codes, and not a byte changed. */

import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { AuditLog } from "../../../src/audit/audit-log.ts";
import { RECORD_TYPES } from "../../../src/core/ledger/log/record-types.ts";
import { identityOf } from "../../../src/core/ledger/log/segment.ts";
import { Background } from "../../../src/host/background.ts";
import { nodeClock } from "../../../src/host/node-clock.ts";
import { silentLog } from "../../../src/host/ports/log.ts";
import { Wal } from "../../../src/ledger/log/wal.ts";

const bin = fileURLToPath(new URL("../../../bin/hyperscale.js", import.meta.url));
const roots: string[] = [];
afterEach(() => {
  for (const path of roots.splice(0)) rmSync(path, { recursive: true, force: true });
});

function dataDir(): string {
  const path = mkdtempSync(join(tmpdir(), "hyperscale-audit-cli-"));
  roots.push(path);
  return path;
}

const surroundings = {
  node: "n1",
  clock: nodeClock,
  log: silentLog,
  background: new Background((work, error) => {
    throw new Error(`${work} failed`, { cause: error });
  }),
};

async function record(root: string): Promise<AuditLog> {
  const audit = await AuditLog.open(join(root, "audit"), surroundings);
  for (let i = 0; i < 30; i++) {
    const requester = { kind: "peer", name: "b", address: "127.0.0.1:7946" } as const;
    audit.record({ kind: "member.joined", subject: `w${i}`, requester });
  }
  audit.record({
    kind: "member.removed",
    subject: "w7",
    requester: { kind: "operator", name: "alice", credential: "loopback", address: "127.0.0.1:5" },
    detail: { why: "\u001b[31mred\u009b2J\u202eevil" },
  });
  await audit.flush();
  return audit;
}

function fingerprint(directory: string): string {
  const hash = createHash("sha256");
  for (const name of readdirSync(directory).sort()) {
    hash.update(name).update(readFileSync(join(directory, name)));
  }
  return hash.digest("hex");
}

function run(...args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [bin, "audit", ...args], {
    encoding: "utf8",
  });
  return { status, stdout, stderr };
}

const lines = (text: string): string[] => text.trimEnd().split("\n");

describe("hyperscale audit", () => {
  it("shows a table, newest last, clean of control characters, beside the process that writes", async () => {
    const root = dataDir();
    const audit = await record(root);
    const before = fingerprint(join(root, "audit"));
    const shown = run(root);
    expect(shown.status).toBe(0);
    const rows = lines(shown.stdout);
    expect(rows).toHaveLength(33);
    expect(rows[0]).toMatch(/^TIME +NODE +KIND +SUBJECT +REQUESTED BY +DETAIL$/);
    expect(rows.at(-1)).toMatch(
      /^\d{4}-.*Z +n1 +member\.removed +w7 +operator alice \(loopback\) from 127\.0\.0\.1:5 +why=red.*evil$/,
    );
    expect(shown.stdout).not.toMatch(/[\u001b\u0080-\u009f\u202e]/);
    expect(fingerprint(join(root, "audit"))).toBe(before);
    await audit.close();
    expect(lines(run(join(root, "audit")).stdout)).toEqual(rows);
  });

  it("gives one object per line, whole, and filters", async () => {
    const root = dataDir();
    await (await record(root)).close();
    const json = run(root, "--json");
    expect(lines(json.stdout)).toHaveLength(32);
    expect(json.stdout).not.toMatch(/[\u001b\u0080-\u009f\u202e]/);
    const last: unknown = JSON.parse(lines(json.stdout).at(-1) ?? "");
    expect(last).toMatchObject({
      node: "n1",
      kind: "member.removed",
      requester: { kind: "operator", name: "alice", credential: "loopback" },
      detail: { why: "\u001b[31mred\u009b2J\u202eevil" },
    });
    expect(lines(run(root, "--json", "--kind", "member", "--limit", "3").stdout)).toEqual(
      lines(json.stdout).slice(-3),
    );
    expect(lines(run(root, "--json", "--subject", "w7").stdout)).toHaveLength(2);
    expect(lines(run(root, "--json", "--requester", "alice").stdout)).toHaveLength(1);
    expect(lines(run(root, "--json", "--from", "1h").stdout)).toHaveLength(32);
    expect(run(root, "--to", "2020-01-01")).toMatchObject({ status: 0, stdout: "" });
    expect(run(root, "--to", "2020-01-01").stderr).toContain("no entry matches");
  });

  it("follows a log, and ends by Ctrl-C", async () => {
    const root = dataDir();
    const audit = await record(root);
    const child = spawn(process.execPath, [
      bin,
      "audit",
      root,
      "--json",
      "--limit",
      "1",
      "--follow",
    ]);
    let text = "";
    const heard = (word: string) =>
      new Promise<void>((resolve) => {
        const look = (): void => {
          if (text.includes(word)) resolve();
        };
        child.stdout.on("data", look);
        look();
      });
    child.stdout.on("data", (data) => {
      text += String(data);
    });
    const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
    await heard("member.removed");
    audit.record({ kind: "member.left", subject: "w9", requester: { kind: "self", name: "" } });
    await heard("member.left");
    child.kill("SIGINT");
    expect(await ended).toBe(0);
    expect(lines(text)).toHaveLength(2);
    await audit.close();
  });

  it("reads around damage and reports it with exit code 1", async () => {
    const root = dataDir();
    await (await record(root)).close();
    const path = join(root, "audit", "segment_00000001.wal");
    const bytes = readFileSync(path);
    bytes.fill(0xee, 600, 604);
    writeFileSync(path, bytes);
    const shown = run(root);
    expect(shown.status).toBe(1);
    expect(shown.stderr).toContain("segment_00000001.wal");
    expect(lines(shown.stdout).length).toBeGreaterThan(2);
  });

  it("rejects other directories with exit code 2, and a newer log with 1", async () => {
    expect(run("/nowhere/at/all")).toMatchObject({ status: 2, stdout: "" });
    expect(run("/nowhere/at/all").stderr).toContain("does not exist");
    const root = dataDir();
    expect(run(root).stderr).toContain("is not an audit log: it is empty");
    writeFileSync(join(root, "notes.txt"), "mine");
    expect(run(root)).toMatchObject({ status: 2 });
    expect(run(root).stderr).toContain("it holds notes.txt");
    const wal = await Wal.open({
      directory: join(root, "wal"),
      identity: identityOf("prod", "n1"),
      config: { segmentBytes: 4_096 },
    });
    await wal.append(RECORD_TYPES.VSR_ENTRY, Buffer.from("job"));
    await wal.close();
    expect(run(join(root, "wal")).stderr).toContain("belongs to another log");

    mkdirSync(join(root, "audit"));
    const later = await AuditLog.open(join(root, "audit"), surroundings);
    await later.close();
    const path = join(root, "audit", "segment_00000001.wal");
    const bytes = readFileSync(path);
    bytes.writeUInt16LE(6, 4);
    writeFileSync(path, bytes);
    const newer = run(root);
    expect(newer.status).toBe(1);
    expect(newer.stderr).toContain("was written by a newer version");
  });

  it("answers wrong arguments with exit code 2 and what to write", () => {
    expect(run().status).toBe(2);
    expect(run(".", "--from", "yesterday").stderr).toContain("2h for two hours ago");
    expect(run(".", "--kind", "membr").stderr).toContain("member");
    expect(run(".", "--limit", "0").status).toBe(2);
    expect(run(".", "--from", "1h", "--to", "2h").stderr).toContain("--from is after --to");
    const help = run("--help").stdout;
    for (const word of ["--follow", "member.failed", "hyperscale audit data/n1", "Exit codes"]) {
      expect(help).toContain(word);
    }
  });
});
