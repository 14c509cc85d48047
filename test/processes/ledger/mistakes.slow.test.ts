/**
 * User mistakes: each is reported with what, where and how to fix it, the process exits with its code, and nothing on
 * disk has changed.
 */

import { execFile, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { open, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LedgerCluster, until } from "../../../bench/ledger/processes.ts";
import { needs } from "../../needs.ts";
import { PATIENCE_MS } from "../../patience.ts";

const BIN = fileURLToPath(new URL("../../../bin/hyperscale.js", import.meta.url));

interface Ended {
  readonly code: number;
  readonly out: string;
  readonly errors: string;
}

function hyperscale(...args: string[]): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(process.execPath, [BIN, ...args], { timeout: PATIENCE_MS }, (error, out, errors) => {
      const code = error === null ? 0 : Number(error.code ?? 1);
      resolve({ code, out, errors });
    });
  });
}

/** Every file below, with its content. */
function picture(dir: string): string {
  if (!existsSync(dir)) return "absent";
  const lines = readdirSync(dir, { recursive: true, withFileTypes: true }).map((entry) => {
    const path = join(entry.parentPath, entry.name);
    if (!entry.isFile()) return `${path}/`;
    const { size, mtimeMs } = statSync(path);
    return `${path} ${size} ${mtimeMs} ${createHash("sha256").update(readFileSync(path)).digest("hex")}`;
  });
  return lines.sort().join("\n");
}

let cluster: LedgerCluster;
/** A separate node, with a log, that is not running. */
let alone: LedgerCluster;

beforeAll(async () => {
  cluster = await LedgerCluster.prepare({ nodes: 3, leaseMs: 1_000 });
  alone = await LedgerCluster.prepare({ nodes: 1, leaseMs: 1_000 });
  alone.start("n1");
  await alone.ready("n1");
  alone.node("n1").kill("SIGTERM");
  await alone.node("n1").ended;
});

afterAll(async () => {
  await cluster?.stop();
  await alone?.stop();
});

/** Starts the lone node after `spoil`; it must refuse, and leave everything as it was. */
async function refused(spoil: () => void | Promise<void>): Promise<string> {
  await spoil();
  const before = picture(join(alone.dir, "n1"));
  const { code, errors } = await hyperscale("ledger", "start", "--config", alone.configFile("n1"));
  expect(code).toBe(1);
  expect(picture(join(alone.dir, "n1"))).toBe(before);
  return errors;
}

describe("a configuration that is wrong", () => {
  it("is rejected with every mistake, its position and how to fix it", async () => {
    const file = join(cluster.dir, "wrong.json");
    const config = {
      ...{
        name: "N-1",
        region: "use1",
        bind: "localhost:7101",
        api: "0.0.0.0:7201",
        colour: "red",
      },
      ...{ peers: [{ name: "n2", region: "euw1", address: "127.0.0.2:99999" }], dataDir: "x" },
      ...{ replicas: 2, leaseMs: 5 },
    };
    writeFileSync(file, JSON.stringify(config));
    const { code, errors } = await hyperscale("ledger", "start", "--config", file);
    expect(code).toBe(2);
    expect(errors).toContain("name: lower-case letters and digits only");
    expect(errors).toContain('bind: "localhost" is a name: write the numeric address');
    expect(errors).toContain("peers.0.address");
    expect(errors).toContain("replicas: an odd number");
    expect(errors).toContain("leaseMs");
    expect(errors).toContain("colour");
    expect(existsSync(join(cluster.dir, "x"))).toBe(false);
  });

  it("is rejected when it is invalid JSON, or missing", async () => {
    const file = join(cluster.dir, "broken.json");
    writeFileSync(file, "{ name: ");
    expect((await hyperscale("ledger", "start", "--config", file)).errors).toContain("not JSON");
    const absent = await hyperscale("ledger", "start", "--config", `${file}.absent`);
    expect(absent).toMatchObject({ code: 2 });
    expect(absent.errors).toContain("ledger init");
  });
});

describe("a data directory that is not this node's", () => {
  it("is rejected when the log is another node's or another cluster's", async () => {
    const errors = await refused(() => alone.configure("n1", { cluster: "other" }));
    alone.configure("n1", {});
    expect(errors).toMatch(/another|belongs/);
  });

  it("is rejected when there is a foreign file in the log", async () => {
    const foreign = join(alone.dir, "n1", "wal", "notes.txt");
    const errors = await refused(() => writeFileSync(foreign, "mine"));
    await rm(foreign);
    expect(errors).toContain("notes.txt is no file of a write-ahead log");
  });

  it("is rejected when the log is of another version", async () => {
    const segment = join(alone.dir, "n1", "wal", "segment_00000001.wal");
    const saved = readFileSync(segment).subarray(0, 64);
    const errors = await refused(() => changeVersion(segment));
    const file = await open(segment, "r+");
    await file.write(saved, 0, saved.length, 0);
    await file.close();
    expect(errors).toMatch(/version/);
  });

  it("is rejected when it is empty and not marked as new", async () => {
    const dataDir = join(alone.dir, "fresh");
    alone.configure("n1", { dataDir: "fresh" });
    const { code, errors } = await hyperscale(
      "ledger",
      "start",
      "--config",
      alone.configFile("n1"),
    );
    expect(code).toBe(1);
    expect(errors).toContain("hyperscale ledger found --config");
    expect(existsSync(dataDir)).toBe(false);
    const found = await hyperscale("ledger", "found", "--config", alone.configFile("n1"));
    expect(found).toMatchObject({ code: 0 });
    alone.configure("n1", {});
  });

  it("is rejected when it is not writable", async () => {
    // Root writes through modes; a file in the way of the directory stops everybody.
    mkdirSync(join(alone.dir, "blocked"));
    writeFileSync(join(alone.dir, "blocked", "founding"), "");
    writeFileSync(join(alone.dir, "blocked", "wal"), "in the way");
    alone.configure("n1", { dataDir: "blocked" });
    const { code, errors } = await hyperscale(
      "ledger",
      "start",
      "--config",
      alone.configFile("n1"),
    );
    alone.configure("n1", {});
    expect(code).toBe(1);
    expect(errors).toMatch(/is not a directory/);
  });

  it("is rejected while another process has the port, before the disk is touched", async () => {
    const { host, port } = new URL(`http://${alone.place("n1").bind}`);
    const server = createServer();
    const [address] = host.split(":");
    await new Promise<void>((resolve) => server.listen(Number(port), address, resolve));
    const errors = await refused(() => {});
    await new Promise<void>((resolve) => server.close(() => resolve()));
    expect(errors).toContain("is taken: is this node running already?");
  });
});

describe("peers that do not belong together", () => {
  it("reject each other with a reason in both logs: another cluster, another replica set", async () => {
    cluster.configure("n2", { cluster: "elsewhere" });
    const [, , third] = cluster.places;
    const peers = [{ name: "n1", region: "use1", address: cluster.place("n1").bind }];
    cluster.configure("n3", { peers });
    for (const { name } of cluster.places) cluster.start(name);
    for (const { name } of cluster.places) await cluster.ready(name);
    const says = (name: string, text: string): boolean => cluster.node(name).errors.includes(text);
    const met = 'cluster \\"elsewhere\\" met cluster \\"test\\"';
    const back = 'cluster \\"test\\" met cluster \\"elsewhere\\"';
    await until("both clusters are named", PATIENCE_MS, () =>
      ["n1", "n2"].every((name) => says(name, met) || says(name, back)),
    );
    await until("both replica sets are named", PATIENCE_MS, () =>
      ["n1", third?.name ?? "n3"].every((name) => says(name, "another replica set")),
    );
    expect(cluster.node("n1").events.filter(({ event, up }) => event === "peer" && up)).toEqual([]);
  });
});

const hasStrace = spawnSync("strace", ["-V"]).status === 0;

describe("a disk that fails", () => {
  it(
    "ends the process with 70 and a message when a sync fails (strace)",
    needs(hasStrace, "no strace (package strace)"),
    async () => {
      const args = ["-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync"];
      const inject = ["-e", "inject=fdatasync:error=EIO:when=6+"];
      const start = [BIN, "ledger", "start", "--config", alone.configFile("n1")];
      const ended = await new Promise<Ended>((resolve) => {
        const child = execFile(
          "strace",
          [...args, ...inject, process.execPath, ...start],
          { timeout: PATIENCE_MS, env: { ...process.env, UV_THREADPOOL_SIZE: "1" } },
          (error, out, errors) => {
            const signal = error?.signal ?? "";
            resolve({ code: Number(error?.code ?? 0), out, errors: `${errors}${signal}` });
          },
        );
        const { api } = alone.place("n1");
        const push = setInterval(() => {
          const body = JSON.stringify({ spec: "x" });
          const headers = { authorization: `Bearer ${alone.tokenAt(api).token}` };
          fetch(`http://${api}/v1/jobs`, { method: "POST", body, headers }).catch(() => {});
        }, 50);
        child.once("exit", () => clearInterval(push));
      });
      expect(ended.errors).toContain("the write-ahead log has failed");
      expect(ended.errors).toContain("EIO");
      expect(ended, ended.errors).toMatchObject({ code: 70 });
      const again = alone.start("n1");
      await alone.ready("n1");
      again.kill("SIGTERM");
      expect(await again.ended).toBe(0);
    },
  );
});

describe("commands against no node", () => {
  it("explain what to do, and how to retry", async () => {
    const { api } = alone.place("n1");
    const status = await hyperscale("ledger", "status", "--api", api);
    expect(status.code).toBe(1);
    expect(status.errors).toContain(`no ledger node answers at ${api}`);
    const wrong = await hyperscale("ledger", "put", "some-job", "--api", api);
    expect(wrong.code).toBe(2);
    expect(wrong.errors).toContain("--event: say what happened");
  });
});

/** The version follows the magic of a segment's header. */
async function changeVersion(segment: string): Promise<void> {
  const file = await open(segment, "r+");
  await file.write(Uint8Array.of(99), 0, 1, 4);
  await file.close();
}
