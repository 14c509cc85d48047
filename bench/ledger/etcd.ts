/**
 * etcd from Debian's package beside us: three members on loopback, every write synced, the same payload and the same
 * number of requests in flight, sent to its leader, which is its best case. Its members talk in the clear; ours
 * encrypt.
 */

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { EtcdConnection } from "./grpc.ts";
import { Meter, type Metered } from "./meter.ts";
import { until } from "./processes.ts";

const CONNECTIONS = 8;

interface EtcdOptions {
  readonly keys: number;
  readonly seconds: number;
  readonly warmMs: number;
  readonly inFlight: number;
  readonly payload: Uint8Array;
}

/** Null when etcd is not installed. */
export async function etcdPuts(
  options: EtcdOptions,
): Promise<(Metered & { version: string }) | null> {
  const version = etcdVersion();
  if (version === null) return null;
  const dir = await mkdtemp(join(tmpdir(), "hyperscale-etcd-"));
  const net = `127.${20 + (process.pid % 200)}.${randomBytes(1)[0]}`;
  const hosts = [1, 2, 3].map((at) => `${net}.${at}`);
  const initial = hosts.map((host, at) => `m${at + 1}=http://${host}:2380`).join(",");
  const members = hosts.map((host, at) => startMember(dir, `m${at + 1}`, host, initial));
  try {
    const leader = await findLeader(hosts);
    const meter = new Meter(() => members.map(({ pid }) => cpuOf(pid)).reduce((a, b) => a + b, 0));
    const connections = Array.from({ length: CONNECTIONS }, () => new EtcdConnection(leader, 2379));
    let stopped = false;
    const next = (at: number): void => {
      const sentAt = performance.now();
      const connection = connections[at % CONNECTIONS] as EtcdConnection;
      connection.put(Buffer.from(`job/${at % options.keys}`), options.payload, (ok) => {
        meter.note(ok, sentAt);
        if (!stopped && ok) next(at);
      });
    };
    for (let at = 0; at < options.inFlight; at++) next(at);
    await pause(options.warmMs);
    meter.start();
    await pause(options.seconds * 1_000);
    const measured = meter.stop();
    stopped = true;
    for (const connection of connections) connection.close();
    return { ...measured, version };
  } finally {
    for (const member of members) {
      member.kill("SIGKILL");
      await new Promise((resolve) => member.once("exit", resolve));
    }
    await rm(dir, { recursive: true, force: true });
  }
}

function etcdVersion(): string | null {
  try {
    return execFileSync("etcd", ["--version"], { encoding: "utf8" }).split("\n")[0] ?? null;
  } catch {
    return null;
  }
}

function startMember(dir: string, name: string, host: string, initial: string): ChildProcess {
  const peer = `http://${host}:2380`;
  const client = `http://${host}:2379`;
  return spawn(
    "etcd",
    [
      ...["--name", name, "--data-dir", join(dir, name)],
      ...["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer],
      ...["--listen-client-urls", client, "--advertise-client-urls", client],
      ...["--initial-cluster", initial, "--initial-cluster-state", "new"],
      // A busy machine must not cost it its leader.
      ...["--heartbeat-interval", "500", "--election-timeout", "5000", "--log-level", "error"],
    ],
    { stdio: "ignore", env: { ...process.env, ETCDCTL_API: "3" } },
  );
}

/** The host whose member leads. */
async function findLeader(hosts: readonly string[]): Promise<string> {
  let leader: string | undefined;
  await until("etcd has a leader", 60_000, () => {
    leader = hosts.find((host) => {
      try {
        const args = [`--endpoints=${host}:2379`, "endpoint", "status", "-w", "json"];
        const env = { ...process.env, ETCDCTL_API: "3" };
        const text = execFileSync("etcdctl", args, { encoding: "utf8", stdio: "pipe", env });
        const [{ Status: status }] = JSON.parse(text) as [
          { Status: { leader: number; header: { member_id: number } } },
        ];
        return status.leader === status.header.member_id;
      } catch {
        return false;
      }
    });
    return leader !== undefined;
  });
  return leader as string;
}

function cpuOf(pid: number | undefined): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}
