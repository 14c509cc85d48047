/** Tools of the comparison, with the arguments that keep 64 connections busy until they are stopped. */

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Command, isOnPath, pinned } from "./processes.ts";
import type { Tool } from "./rotation.ts";
import { temporaryFolder } from "./temporary.ts";

const CONNECTIONS = 64;
/** Longer than any benchmark: tools are killed when it is over. */
const SECONDS = 1_800;
/** Timeouts of requests must outlast the time a tool is stopped. */
const TIMEOUT_SECONDS = 1_200;

const here = fileURLToPath(new URL(".", import.meta.url));
const root = join(here, "..", "..");

export const WRK = "wrk";
export const AUTOCANNON = "autocannon";
export const K6 = "k6";
export const BARE_NODE = "bare Node loop";
export const PREPARED = "hyperscale, prepared step";
export const FUNCTION_STEP = "hyperscale, function step + check";
export const FLOW_CONSTANT = "hyperscale, flow of 3 constant calls";
export const FLOW_TOKEN = "hyperscale, flow: token, route, JSON";

export function peersAndOurs(url: string, core: number | undefined): readonly Tool[] {
  const environment = { BENCH_URL: url, BENCH_VUS: String(CONNECTIONS) };
  const onPath = (name: string, args: readonly string[]): Tool => ({
    name,
    start: isOnPath(name)
      ? { file: name, args, environment, ...pinned(core) }
      : { skip: "not on the PATH" },
  });
  const node = (name: string, args: readonly string[]): Tool => ({
    name,
    start: { file: process.execPath, args, environment, ...pinned(core) },
  });
  const c = String(CONNECTIONS);
  const ours = (name: string, flow: string): Tool => ({
    name,
    start: hyperscale(flow, url, { ...pinned(core), cores: 1 }),
  });
  return [
    wrk(url, core),
    node(BARE_NODE, [join(here, "peers", "bare-node.mjs"), url, c]),
    node(AUTOCANNON, [
      join(root, "node_modules", "autocannon", "autocannon.js"),
      ...["-c", c, "-d", String(SECONDS), "-t", String(TIMEOUT_SECONDS), "--no-progress", url],
    ]),
    node("undici dispatch", [join(here, "peers", "undici-dispatch.mjs"), url, c]),
    onPath(K6, ["run", "--quiet", "--no-usage-report", join(here, "peers", "k6.js")]),
    onPath("artillery", ["run", "--quiet", join(here, "peers", "artillery.yml")]),
    ours(PREPARED, "prepared.mjs"),
    ours(FUNCTION_STEP, "function-step.mjs"),
    ours(FLOW_CONSTANT, "flow-constant.mjs"),
    ours(FLOW_TOKEN, "flow-token.mjs"),
  ];
}

/** Tools that send the same request repeatedly over TLS. */
export function secureTools(url: string, core: number | undefined): readonly Tool[] {
  const prepared = hyperscale("prepared-tls.mjs", url, { ...pinned(core), cores: 1 });
  return [wrk(url, core), { name: PREPARED, start: prepared }];
}

function wrk(url: string, core: number | undefined): Tool {
  installWrk();
  if (!isOnPath(WRK)) return { name: WRK, start: { skip: "not on the PATH" } };
  const times = [`-d${SECONDS}s`, "--timeout", `${TIMEOUT_SECONDS}s`];
  const args = ["-t1", `-c${CONNECTIONS}`, ...times, url];
  return { name: WRK, start: { file: WRK, args, ...pinned(core) } };
}

interface HyperscaleOptions {
  readonly core?: number;
  readonly cores: number;
  /** Further arguments of `hyperscale run`. */
  readonly args?: readonly string[];
  readonly ui?: string;
}

export function hyperscale(
  flow: string,
  url: string,
  { core, cores, args = [], ui = "none" }: HyperscaleOptions,
): Command | { readonly skip: string } {
  const run = join(root, "src", "cli", "commands", "run.ts");
  if (!existsSync(run)) return { skip: "this checkout has no `hyperscale run`" };
  return {
    file: process.execPath,
    args: [
      join(root, "bin", "hyperscale.js"),
      ...["run", join(here, "flows", flow), "--cores", String(cores), "--ui", ui],
      // Results are not used, and must not end up in the checkout.
      ...["--out", temporaryFolder()],
      ...args,
    ],
    environment: { BENCH_URL: url },
    ...pinned(core),
  };
}

/** Installed from Debian where permitted; otherwise wrk is skipped by name like any other. */
function installWrk(): void {
  if (isOnPath(WRK) || process.getuid?.() !== 0 || !isOnPath("apt-get")) return;
  process.stderr.write("installing wrk …\n");
  spawnSync("apt-get", ["install", "-y", "wrk"], { stdio: "ignore" });
}
