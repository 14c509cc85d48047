/**
 * CPU time of this process and of the PostgreSQL server: the cost of a contender, which a busy machine changes less
 * than its duration. Zero for the server where there is no /proc.
 */

import { readdirSync, readFileSync } from "node:fs";

/** Ticks of /proc per second, on every Linux. */
const TICKS_PER_SECOND = 100;
/**
 * Fields after the name of the program: state, then the parent; and the times of a process and its finished children.
 */
const PARENT = 1;
const OWN_TICKS = [11, 12];
const CHILD_TICKS = [13, 14];

export function cpuMs(serverPid: number): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000 + serverMs(serverPid);
}

function serverMs(pid: number): number {
  const server = statOf(pid);
  if (server === undefined) return 0;
  let ticks = ticksOf(server, [...OWN_TICKS, ...CHILD_TICKS]);
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const stat = statOf(Number(name));
    if (stat !== undefined && Number(stat[PARENT]) === pid) ticks += ticksOf(stat, OWN_TICKS);
  }
  return (ticks / TICKS_PER_SECOND) * 1_000;
}

function ticksOf(stat: readonly string[], fields: readonly number[]): number {
  return fields.reduce((sum, field) => sum + Number(stat[field]), 0);
}

/** Undefined for a process that has exited, and where there is no /proc. */
function statOf(pid: number): readonly string[] | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    return text.slice(text.lastIndexOf(")") + 2).split(" ");
  } catch {
    return undefined;
  }
}
