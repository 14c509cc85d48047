/**
 * Checks before a run that this machine can hold its connections. Two limits of the operating system stop load
 * generators most often, and both do it in mid-run with errors that look like the target's:
 *
 *     open files   one per connection and process           EMFILE
 *     local ports  one per connection to the same address   EADDRNOTAVAIL
 *
 * The rules (`judge…`) are pure: needs and limits in, an answer or a problem with its remedy out. The `check…`
 * functions read the system, raise what may be raised, and apply the rules.
 */

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { userInfo } from "node:os";

/** Infinity where the system reports unlimited. */
export interface DescriptorLimits {
  readonly soft: number;
  readonly hard: number;
  /** Linux: a limit even for root (fs.nr_open). */
  readonly ceiling: number;
}

interface PortRange {
  readonly low: number;
  readonly high: number;
  /** Ports inside the range that the system reserves. */
  readonly reserved: number;
}

export interface System {
  readonly platform: NodeJS.Platform;
  readonly user: string;
  readonly root: boolean;
}

/** `possible` is the number of connections that the limit allows. */
type LimitCheck =
  | { readonly ok: true; readonly possible: number; readonly raisedFrom: number | null }
  | { readonly ok: false; readonly possible: number; readonly problem: string };

/** Open files of a process that are not connections: libraries, pipes, epoll, results. */
export const DESCRIPTORS_RESERVED = 64;

/** Widest range of local ports that we advise: below are the ports of services. */
const ADVISED_PORT_LOW = 10_000;
const PORT_MIN = 1_024;
const PORT_MAX = 65_535;

/** Checks the descriptors for this many connections in one process. Raises the limit where permitted. */
export function checkDescriptors(connections: number): LimitCheck {
  const before = readDescriptorLimits();
  if (before === null) return { ok: true, possible: Number.POSITIVE_INFINITY, raisedFrom: null };
  const system = thisSystem();
  const needed = connections + DESCRIPTORS_RESERVED;
  const target = raisedTo(needed, before, system);
  if (target === null) return judgeDescriptors(connections, before, system);
  raise(target);
  const after = readDescriptorLimits() ?? before;
  // Root without the capability, as in many containers, needs the administrator like any user.
  const check = judgeDescriptors(connections, after, { ...system, root: false });
  return check.ok && after.soft > before.soft ? { ...check, raisedFrom: before.soft } : check;
}

/** Returns the limits to set so that `needed` fits, or null when that is unnecessary or not permitted. */
export function raisedTo(
  needed: number,
  limits: DescriptorLimits,
  { platform, root }: System,
): { readonly soft: number; readonly hard: number } | null {
  if (limits.soft >= needed || platform !== "linux") return null;
  if (needed <= limits.hard) return { soft: needed, hard: limits.hard };
  return root && needed <= limits.ceiling ? { soft: needed, hard: needed } : null;
}

export function judgeDescriptors(
  connections: number,
  limits: DescriptorLimits,
  system: System,
): LimitCheck {
  const needed = connections + DESCRIPTORS_RESERVED;
  const possible = Math.max(0, limits.soft - DESCRIPTORS_RESERVED);
  if (needed <= limits.soft) return { ok: true, possible, raisedFrom: null };
  const problem = [
    `${connections} connections need ${needed} open files, and this process may have ${limits.soft}.`,
    ...descriptorRemedies(needed, limits, system),
    `  Or use at most ${possible} connections per core: fewer virtual users, or more cores.`,
  ].join("\n");
  return { ok: false, possible, problem };
}

function descriptorRemedies(
  needed: number,
  { hard, ceiling }: DescriptorLimits,
  { platform, user, root }: System,
): readonly string[] {
  if (needed <= hard)
    return [`  Raise the limit in this shell, then run again:  ulimit -n ${needed}`];
  if (platform === "darwin") {
    return [
      "  The hard limit of this shell is lower than that. Raise it, then open a new shell:",
      `    sudo launchctl limit maxfiles ${needed} ${needed}`,
      `    sudo sysctl -w kern.maxfilesperproc=${needed}`,
    ];
  }
  const kernel = needed > ceiling ? [`    sudo sysctl -w fs.nr_open=${needed}`] : [];
  if (root) return ["  Raise the limit, then run again:", ...kernel, `    ulimit -n ${needed}`];
  return [
    `  The hard limit is ${hard}, so an administrator must raise it:`,
    ...kernel,
    "    in /etc/security/limits.conf, then log in again:",
    `      ${user} soft nofile ${needed}`,
    `      ${user} hard nofile ${needed}`,
    `    or for a systemd service:  LimitNOFILE=${needed}`,
    `    or for a container:        --ulimit nofile=${needed}`,
  ];
}

/** Checks the local ports for this many connections to one address and port. */
export function checkPorts(connections: number, remoteIsLoopback: boolean): LimitCheck {
  const { platform } = thisSystem();
  const range = readPortRange(platform);
  return judgePorts(connections, range, { remoteIsLoopback, platform });
}

export function judgePorts(
  connections: number,
  { low, high, reserved }: PortRange,
  where: { readonly remoteIsLoopback: boolean; readonly platform: NodeJS.Platform },
): LimitCheck {
  const possible = Math.max(0, high - low + 1 - reserved);
  if (connections <= possible) return { ok: true, possible, raisedFrom: null };
  const several =
    where.remoteIsLoopback && where.platform === "linux"
      ? "several addresses (127.0.0.2, 127.0.0.3, … all lead to this machine)"
      : "several addresses or ports";
  const problem = [
    `${connections} connections to one address and port need as many local ports, ` +
      `and this machine has ${possible} (${low} to ${high}).`,
    ...portRemedies(connections, { low, high, reserved }, where.platform),
    `  Or use at most ${possible} virtual users, or spread the target over ${several}.`,
  ].join("\n");
  return { ok: false, possible, problem };
}

function portRemedies(
  connections: number,
  { low, high, reserved }: PortRange,
  platform: NodeJS.Platform,
): readonly string[] {
  const lowest = Math.min(low, ADVISED_PORT_LOW);
  const start = connections <= PORT_MAX - lowest + 1 - reserved ? lowest : PORT_MIN;
  if (connections > PORT_MAX - start + 1 - reserved) {
    return [`  No setting gives more than ${PORT_MAX - PORT_MIN + 1} to one address and port.`];
  }
  const last = Math.max(high, PORT_MAX);
  const set =
    platform === "darwin"
      ? `sudo sysctl -w net.inet.ip.portrange.first=${start} net.inet.ip.portrange.last=${last}`
      : platform === "win32"
        ? `netsh int ipv4 set dynamicport tcp start=${start} num=${last - start + 1}`
        : `sudo sysctl -w net.ipv4.ip_local_port_range="${start} ${last}"`;
  return [`  Widen the range, then run again:  ${set}`];
}

// Reading the system.

function thisSystem(): System {
  return { platform: process.platform, user: userName(), root: process.getuid?.() === 0 };
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // A user id without an entry, as in many containers; limits.conf accepts * for all users.
    return "*";
  }
}

/** Null where there is no such limit (Windows) or nothing to read it with. */
export function readDescriptorLimits(): DescriptorLimits | null {
  if (process.platform === "win32") return null;
  if (process.platform === "linux") {
    const limits = parseProcLimits(readText("/proc/self/limits"));
    const ceiling = Number.parseInt(readText("/proc/sys/fs/nr_open"), 10);
    if (limits !== null) return { ...limits, ceiling: ceiling > 0 ? ceiling : limits.hard };
  }
  const soft = parseLimit(run("sh", ["-c", "ulimit -Sn"]));
  const hard = parseLimit(run("sh", ["-c", "ulimit -Hn"]));
  return soft === null || hard === null ? null : { soft, hard, ceiling: hard };
}

export function parseProcLimits(
  text: string,
): { readonly soft: number; readonly hard: number } | null {
  const match = /^Max open files\s+(\S+)\s+(\S+)/m.exec(text);
  const soft = parseLimit(match?.[1] ?? "");
  const hard = parseLimit(match?.[2] ?? "");
  return soft === null || hard === null ? null : { soft, hard };
}

function parseLimit(text: string): number | null {
  if (text.trim() === "unlimited") return Number.POSITIVE_INFINITY;
  const value = Number.parseInt(text, 10);
  return value >= 0 ? value : null;
}

export function readPortRange(platform: NodeJS.Platform): PortRange {
  // The range of IANA, and the default of macOS and Windows.
  const fallback: PortRange = { low: 49_152, high: 65_535, reserved: 0 };
  if (platform === "linux") {
    const range = readText("/proc/sys/net/ipv4/ip_local_port_range");
    return (
      parsePortRange(range, readText("/proc/sys/net/ipv4/ip_local_reserved_ports")) ?? fallback
    );
  }
  if (platform !== "darwin") return fallback;
  const names = ["net.inet.ip.portrange.first", "net.inet.ip.portrange.last"];
  return parsePortRange(run("sysctl", ["-n", ...names]), "") ?? fallback;
}

/** `reservedText` is Linux's list: "8080,9000-9010". */
export function parsePortRange(text: string, reservedText: string): PortRange | null {
  const match = /^\s*(\d+)\s+(\d+)\s*$/.exec(text);
  const low = Number(match?.[1]);
  const high = Number(match?.[2]);
  if (!(low <= high)) return null;
  let reserved = 0;
  for (const [, first, last] of reservedText.matchAll(/(\d+)(?:-(\d+))?/g)) {
    const from = Math.max(low, Number(first));
    const to = Math.min(high, Number(last ?? first));
    reserved += Math.max(0, to - from + 1);
  }
  return { low, high, reserved };
}

/** Best effort: reading the limits again shows whether it worked. */
function raise({ soft, hard }: { readonly soft: number; readonly hard: number }): void {
  const most = hard === Number.POSITIVE_INFINITY ? "unlimited" : String(hard);
  run("prlimit", ["--pid", String(process.pid), `--nofile=${soft}:${most}`]);
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // Another system; the caller has a fallback or a default.
    return "";
  }
}

function run(command: string, args: readonly string[]): string {
  try {
    return execFileSync(command, args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  } catch {
    // The tool is missing or failed; the caller uses what it can read.
    return "";
  }
}
