/**
 * Where the nodes of a cluster live. With network namespaces the gates have a machine of their own and so has
 * every datacenter: one bridge joins them, and a cut between two is a route into nothing on both sides, so that each
 * still reaches the target. Without them everything is on the loopback, and nothing can be cut.
 */

import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";

export interface Site {
  readonly host: string;
  /** Before the command of a process that runs there. */
  readonly enter: readonly string[];
}

const NET = "10.79.0";
const NAMES = "/run/netns";
const LOOPBACK: Site = { host: "127.0.0.1", enter: [] };
/** Marks the process that has its own network and mounts. */
const MARK = "HYPERSCALE_CHAOS_APART";

/** True when this process may do to its network and mounts what it likes. */
export function isApart(): boolean {
  return process.env[MARK] === "1";
}

/**
 * Runs this program again with its own network, mounts and process numbers: its leftovers disappear with it, and other
 * programs of this machine are not affected. Null where the machine does not allow it.
 */
export function runApart(): number | null {
  const apart = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];
  if (spawnSync("unshare", [...apart, "true"], { stdio: "ignore" }).status !== 0) return null;
  const self = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  const env = { ...process.env, [MARK]: "1" };
  return spawnSync("unshare", [...apart, ...self], { stdio: "inherit", env }).status ?? 1;
}

export class Sites {
  /** Where the target listens and clients are. */
  readonly home: Site;
  readonly #sites = new Map<string, Site>();

  private constructor(home: Site) {
    this.home = home;
  }

  /** `names`: of the datacenters; the gates are the site "". */
  static create(names: readonly string[]): Sites {
    if (!isApart()) return new Sites(LOOPBACK);
    const sites = new Sites({ host: `${NET}.1`, enter: [] });
    // Names of namespaces are files: these are private to this process and disappear with it.
    mkdirSync(NAMES, { recursive: true });
    execFileSync("mount", ["-t", "tmpfs", "tmpfs", NAMES]);
    ip("link", "set", "lo", "up");
    ip("link", "add", "bridge", "type", "bridge");
    ip("addr", "add", `${NET}.1/24`, "dev", "bridge");
    ip("link", "set", "bridge", "up");
    ["", ...names].forEach((name, at) => {
      sites.#add(name, at);
    });
    return sites;
  }

  get canCut(): boolean {
    return this.#sites.size > 0;
  }

  of(name: string): Site {
    return this.#sites.get(name) ?? LOOPBACK;
  }

  /** Nothing passes between the gates and the datacenter. */
  cut(datacenter: string): void {
    this.#route("add", "", datacenter);
    this.#route("add", datacenter, "");
  }

  mend(datacenter: string): void {
    this.#route("del", "", datacenter);
    this.#route("del", datacenter, "");
  }

  /** All traffic from and to the datacenter shares this many bytes a second each way. */
  narrow(datacenter: string, bytesPerSecond: number): void {
    const rate = ["rate", `${bytesPerSecond * 8}bit`, "burst", "32kb", "latency", "400ms"];
    for (const tc of this.#ends(datacenter)) tc("add", "tbf", ...rate);
  }

  widen(datacenter: string): void {
    for (const tc of this.#ends(datacenter)) tc("del");
  }

  /** Both ends of its cable, each for what it sends. */
  #ends(datacenter: string): readonly ((what: string, ...rest: readonly string[]) => void)[] {
    const [, , , namespace = ""] = this.of(datacenter).enter;
    const outer = `cable${namespace.slice("site".length)}`;
    return [["-n", namespace, "cable"] as const, ["", "", outer] as const].map(
      ([flag, space, device]) =>
        (what, ...rest) => {
          const where = flag === "" ? [] : [flag, space];
          const args = [...where, "qdisc", what, "dev", device, "root", ...rest];
          execFileSync("tc", args, { stdio: "pipe" });
        },
    );
  }

  #add(name: string, at: number): void {
    const [namespace, host] = [`site${at}`, `${NET}.${at + 2}`];
    ip("netns", "add", namespace);
    const cable = ["link", "add", `cable${at}`, "type", "veth", "peer", "name", "cable"];
    ip(...cable, "netns", namespace);
    ip("link", "set", `cable${at}`, "master", "bridge", "up");
    ip("-n", namespace, "link", "set", "lo", "up");
    ip("-n", namespace, "addr", "add", `${host}/24`, "dev", "cable");
    ip("-n", namespace, "link", "set", "cable", "up");
    this.#sites.set(name, { host, enter: ["ip", "netns", "exec", namespace] });
  }

  #route(what: "add" | "del", at: string, to: string): void {
    const [, , , namespace = ""] = this.of(at).enter;
    ip("-n", namespace, "route", what, "blackhole", `${this.of(to).host}/32`);
  }
}

function ip(...args: readonly string[]): void {
  execFileSync("ip", args, { stdio: "pipe" });
}
