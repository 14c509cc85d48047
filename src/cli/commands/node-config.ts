/** A first configuration of a node, with comments: required fields, and every setting with its default. */

import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { type SettingRole, settingsOfRole, textOf, variableOf } from "../../ledger/settings.ts";
import { UsageError } from "./ledger-target.ts";

interface Field {
  /** Lines before it. */
  readonly about: string;
  readonly name: string;
  readonly value: unknown;
}

const PEERS = [
  { name: "m2", address: "127.0.0.1:7711" },
  { name: "m3", address: "127.0.0.1:7712" },
];
const MANAGERS = [{ name: "m1", address: "127.0.0.1:7710" }, ...PEERS];

const SECRET: Field = {
  about:
    "The secret of the nodes, one per line: hyperscale keygen > cluster.key. Paths begin at this file.",
  name: "secretFile",
  value: "cluster.key",
};
const CLIENT_SECRET: Field = {
  about: "Secrets that clients may greet with: hyperscale keygen > client.key",
  name: "clientSecretFile",
  value: "client.key",
};
const CODE_FROM: Field = {
  about: 'Whose code workers run: ["clients"], or [] for nobody.',
  name: "codeFrom",
  value: ["clients"],
};
const api = (value: string): Field => ({
  ...{
    about: "Health, readiness and metrics; the rest needs api.token of the data directory.",
    name: "api",
  },
  value,
});
const dataDir = (value: string): Field => ({
  ...{
    about: "What must survive a restart. Never copied from or to another node.",
    name: "dataDir",
  },
  value,
});

const FIELDS: Readonly<Record<SettingRole, readonly Field[]>> = {
  gate: [
    { about: "Unique among the gates: lower-case letters and digits.", name: "name", value: "g1" },
    { about: "Where gates and clients call.", name: "bind", value: "127.0.0.1:7700" },
    api("127.0.0.1:7800"),
    {
      about: "The other gates; one, three or five together.",
      name: "peers",
      value: [
        { name: "g2", address: "127.0.0.1:7701" },
        { name: "g3", address: "127.0.0.1:7702" },
      ],
    },
    {
      about: "All datacenters with all their managers.",
      name: "datacenters",
      value: [{ name: "dc1", managers: MANAGERS }],
    },
    {
      about:
        "Where the figures of all jobs go, as with --report; secrets by env:NAME or file:PATH.",
      name: "reports",
      value: [],
    },
    dataDir("g1"),
    SECRET,
    CLIENT_SECRET,
    CODE_FROM,
  ],
  manager: [
    {
      about: "Unique among the managers of the datacenter: lower-case letters and digits.",
      name: "name",
      value: "m1",
    },
    { about: "Where it is; the same for its peers and workers.", name: "datacenter", value: "dc1" },
    {
      about: "Where managers, workers, gates and clients call.",
      name: "bind",
      value: "127.0.0.1:7710",
    },
    api("127.0.0.1:7810"),
    { about: "The other managers; one, three or five together.", name: "peers", value: PEERS },
    dataDir("m1"),
    SECRET,
    CLIENT_SECRET,
    CODE_FROM,
  ],
  worker: [
    { about: "Unique among the workers of the datacenter.", name: "name", value: "w1" },
    { about: "Where it is; the same as of its managers.", name: "datacenter", value: "dc1" },
    { about: "All managers of the datacenter.", name: "managers", value: MANAGERS },
    { about: "CPU cores that jobs may use.", name: "cores", value: 4 },
    api("127.0.0.1:7900"),
    dataDir("w1"),
    SECRET,
  ],
};

export async function initNode(role: SettingRole, file: string): Promise<void> {
  if (existsSync(file)) throw new UsageError(`${file} is there already`);
  await writeFile(file, exampleConfig(role), { flag: "wx" });
  const next = role === "worker" ? "worker start" : `${role} found`;
  process.stdout.write(`${file} is written: change names and addresses, then "${next}"\n`);
}

/** Settings are comments: omitted ones have their default. */
export function exampleConfig(role: SettingRole): string {
  const fields = FIELDS[role].map(({ about, name, value }) => {
    const text = JSON.stringify(value, null, 2).replaceAll("\n", "\n  ");
    return `  // ${about}\n  ${JSON.stringify(name)}: ${text},`;
  });
  const settings = settingsOfRole(role).flatMap(([name, { about, unit, value }]) => [
    `    // ${about} (${variableOf(name)})`,
    `    // "${name}": ${JSON.stringify(textOf(unit, value))},`,
  ]);
  return `${["{", ...fields, '  "settings": {', ...settings, "  }", "}"].join("\n")}\n`;
}
