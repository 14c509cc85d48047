/** Nodes of a cluster on this machine: their names, addresses and configurations, and the secrets they share. */

import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DEMO_PORT } from "../../demo/server.ts";
import { makeFolder } from "../../host/folders.ts";
import { allowFirstStart } from "../../ledger/founding.ts";
import type { SettingRole } from "../../ledger/settings.ts";
import { formatAddress } from "../../wire/address.ts";
import { UsageError } from "./ledger-target.ts";

const HOST = "127.0.0.1";
/** Offset of the API ports above the port of the first node. */
const API_ABOVE = 100;
const WORKER_API_ABOVE = 200;
const GATES_MAX = 7;
const MANAGERS_MAX = 7;
const WORKERS_MAX = 99;
const DATACENTER = /^[a-z0-9]{1,8}$/;

export interface ClusterShape {
  readonly gates: number;
  readonly datacenters?: readonly string[];
  /** Per datacenter, like the workers. */
  readonly managers: number;
  readonly workers: number;
  readonly cores: number;
  readonly port: number;
  readonly profile: string;
  readonly demoTarget?: true;
  /** Reporters of the gates. */
  readonly gateReport?: readonly string[];
}

/** Timings for nodes that are near each other, far apart, or on one busy machine. */
const PROFILES: Readonly<Record<string, Readonly<Record<SettingRole, object>>>> = {
  dc: { gate: {}, manager: {}, worker: {} },
  local: {
    gate: { lease: "5s" },
    manager: { lease: "5s", workerTimeout: "6s" },
    worker: {},
  },
  wan: {
    gate: { lease: "10s", askTimeout: "10s", datacenterSilence: "20s" },
    manager: { lease: "10s", workerTimeout: "10s" },
    worker: {},
  },
};

export interface NodePlan {
  readonly name: string;
  readonly role: "gate" | "manager" | "worker" | "target";
  /** Empty for a gate. */
  readonly datacenter: string;
  readonly address: string | null;
  readonly api: string | null;
  readonly command: readonly string[];
}

interface Peer {
  readonly name: string;
  readonly address: string;
  readonly api: string;
}

interface Datacenter {
  readonly name: string;
  readonly managers: readonly Peer[];
  readonly workers: readonly { readonly name: string; readonly api: string }[];
}

export function checkShape(shape: ClusterShape): void {
  const { cores, gates, managers, port, workers } = shape;
  if (shape.datacenters?.length === 0)
    throw new UsageError("--datacenters: names no datacenter; name one, or leave it out");
  const datacenters = namesOf(shape);
  const whole = (flag: string, value: number, least: number, most: number): void => {
    if (!Number.isInteger(value) || value < least || value > most)
      throw new UsageError(`${flag}: a whole number from ${least} to ${most}`);
  };
  const odd = (flag: string, value: number): void => {
    if (value % 2 === 0) throw new UsageError(`${flag}: an odd number, as 1, 3 or 5`);
  };
  whole("--gates", gates, 0, GATES_MAX);
  if (gates > 0) odd("--gates", gates);
  if (gates === 0 && datacenters.length > 1)
    throw new UsageError("--datacenters: only one without gates");
  for (const name of datacenters)
    if (!DATACENTER.test(name))
      throw new UsageError(`--datacenters ${name}: at most 8 lower-case letters and digits`);
  if (new Set(datacenters).size < datacenters.length)
    throw new UsageError("--datacenters: a name is given twice");
  whole("--managers", managers, 1, MANAGERS_MAX);
  odd("--managers", managers);
  whole("--workers", workers, 0, WORKERS_MAX);
  whole("--cores", cores, 1, 1_024);
  if (gates + datacenters.length * managers > API_ABOVE || datacenters.length * workers > 99)
    throw new UsageError("these are more nodes than ports are kept for");
  if (!Object.hasOwn(PROFILES, shape.profile))
    throw new UsageError(`--profile: ${Object.keys(PROFILES).join(", ")}`);
  whole("--port", port, 1, 65_535 - WORKER_API_ABOVE - WORKERS_MAX);
}

/** Secrets are created once; an existing directory continues with its data. */
export async function prepareNodes(dir: string, shape: ClusterShape): Promise<readonly NodePlan[]> {
  await makeFolder(dir, { mode: 0o700 });
  for (const name of ["cluster.key", "client.key"]) {
    const path = join(dir, name);
    const secret = `${randomBytes(32).toString("base64")}\n`;
    if (!existsSync(path)) await writeFile(path, secret, { mode: 0o600, flag: "wx" });
  }
  const { datacenters, gates } = layOut(shape);
  const plans: NodePlan[] = [];
  for (const gate of gates) plans.push(await planGate(dir, gate, gates, datacenters, shape));
  for (const datacenter of datacenters)
    plans.push(...(await planDatacenter(dir, datacenter, shape)));
  if (shape.demoTarget === true) {
    const address = formatAddress(HOST, DEMO_PORT);
    const command = ["demo-target", "--json"];
    plans.push({ name: "target", role: "target", datacenter: "", address, api: null, command });
  }
  return plans;
}

function namesOf({ datacenters = [] }: ClusterShape): readonly string[] {
  return datacenters.length === 0 ? ["dc1"] : datacenters;
}

/** Gates have the first ports, then the managers of each datacenter. */
function layOut(shape: ClusterShape): {
  readonly gates: readonly Peer[];
  readonly datacenters: readonly Datacenter[];
} {
  const { port } = shape;
  let [nodes, workers] = [0, 0];
  const peer = (name: string): Peer => {
    const at = port + nodes++;
    return {
      name,
      address: formatAddress(HOST, at),
      api: formatAddress(HOST, at + API_ABOVE),
    };
  };
  const numbered = (count: number): readonly number[] =>
    Array.from({ length: count }, (_, at) => at + 1);
  const gates = numbered(shape.gates).map((at) => peer(`g${at}`));
  const names = namesOf(shape);
  const datacenters = names.map((name) => {
    // A single datacenter need not be named.
    const of = names.length === 1 ? "" : name;
    return {
      name,
      managers: numbered(shape.managers).map((at) => peer(`${of}m${at}`)),
      workers: numbered(shape.workers).map((at) => ({
        name: `${of}w${at}`,
        api: formatAddress(HOST, port + WORKER_API_ABOVE + workers++),
      })),
    };
  });
  return { gates, datacenters };
}

function settingsOf({ profile }: ClusterShape, role: SettingRole): object {
  return PROFILES[profile]?.[role] ?? {};
}

const SECRETS = {
  ...{ secretFile: "cluster.key", clientSecretFile: "client.key" },
  // Only the user who started the cluster can read the clients' secret here.
  codeFrom: ["clients"],
};

async function planGate(
  dir: string,
  gate: Peer,
  gates: readonly Peer[],
  datacenters: readonly Datacenter[],
  shape: ClusterShape,
): Promise<NodePlan> {
  const { address, api, name } = gate;
  const config = {
    ...{ name, bind: address, api, peers: placesOf(gates, name), dataDir: name, ...SECRETS },
    datacenters: datacenters.map((one) => ({ name: one.name, managers: placesOf(one.managers) })),
    reports: shape.gateReport ?? [],
    settings: settingsOf(shape, "gate"),
  };
  await allow(join(dir, name));
  return written(dir, { name, role: "gate", datacenter: "", address, api }, config);
}

async function planDatacenter(
  dir: string,
  { managers, name: datacenter, workers }: Datacenter,
  shape: ClusterShape,
): Promise<readonly NodePlan[]> {
  const plans: NodePlan[] = [];
  for (const { address, api, name } of managers) {
    const peers = placesOf(managers, name);
    await allow(join(dir, name));
    plans.push(
      await written(
        dir,
        { name, role: "manager", datacenter, address, api },
        {
          ...{ name, datacenter, bind: address, api, peers, dataDir: name, ...SECRETS },
          settings: settingsOf(shape, "manager"),
        },
      ),
    );
  }
  for (const { api, name } of workers)
    plans.push(
      await written(
        dir,
        { name, role: "worker", datacenter, address: null, api },
        {
          ...{ name, datacenter, managers: placesOf(managers), api, dataDir: name },
          ...{ cores: shape.cores, secretFile: "cluster.key" },
          settings: { ...settingsOf(shape, "worker"), drainDeadline: "5s" },
        },
      ),
    );
  return plans;
}

function placesOf(
  nodes: readonly Peer[],
  without = "",
): readonly { readonly name: string; readonly address: string }[] {
  return nodes
    .filter(({ name }) => name !== without)
    .map(({ address, name }) => ({ name, address }));
}

async function written(
  dir: string,
  node: Omit<NodePlan, "command">,
  config: object,
): Promise<NodePlan> {
  const file = join(dir, `${node.name}.json`);
  await writeFile(file, `${JSON.stringify(config, null, 2)}\n`);
  return { ...node, command: [node.role, "start", "--config", file] };
}

async function allow(dataDir: string): Promise<void> {
  if (existsSync(join(dataDir, "wal"))) return;
  const problem = await allowFirstStart(dataDir, "found");
  if (problem !== null) throw new UsageError(problem);
}
