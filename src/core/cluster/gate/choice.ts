/**
 * Chooses the datacenters of a job (GREQ-2). Named datacenters are used as they are; otherwise preferred ones with free
 * cores come first, then the others in routing order. A job that must wait gets the reason.
 *
 * Where jobs are queued, no core is free for long, so a job joins the queue of a datacenter, where tenants take turns.
 * Held back at the gate, it would be behind all of them and behind later ones.
 */

import { formatCounted } from "../../load/results/format.ts";
import type { Routing } from "../messages.ts";
import type { DatacenterRoom } from "./datacenters.ts";
import { coresOf, weightOf } from "./job-parts.ts";

/** `cores`: free cores, the weight in a split; equal for all if the job requires a number of cores. */
interface ChosenDatacenter {
  readonly name: string;
  readonly cores: number;
}

type Choice =
  | { readonly kind: "chosen"; readonly datacenters: readonly ChosenDatacenter[] }
  | { readonly kind: "wait"; readonly reason: string };

/** A datacenter that recently failed this job, with the reason and the end of its cool-down. */
export interface Avoided {
  readonly why: string;
  readonly until: number;
}

interface Rooms {
  readonly rooms: readonly DatacenterRoom[];
  readonly avoided: ReadonlyMap<string, Avoided>;
  readonly now: number;
  /** Routing order of these datacenters. */
  readonly routingOrder: (names: readonly string[]) => readonly string[];
}

/** `cores`: required by the job; null for any number. */
export function chooseDatacenters(
  routing: Routing,
  cores: number | null,
  { avoided, routingOrder, now, rooms }: Rooms,
): Choice {
  const { count, datacenters, prefer, strict } = routing;
  if (datacenters.length > 0) return named(routing, cores, rooms);
  const [needed = 1] = coresOf(cores, routing, Array<number>(count).fill(1)) ?? [];
  const rank = ({ name }: DatacenterRoom): number =>
    prefer.includes(name) ? prefer.indexOf(name) : prefer.length;
  const open = rooms.filter(({ name }) => !strict || prefer.includes(name));
  const avoidReason = (name: string): string | null => whyAvoided(avoided, name, now);
  const fit = open.filter((room) => isEligible(room, needed) && avoidReason(room.name) === null);
  const turns = routingOrder(fit.map(({ name }) => name));
  const sorted = fit.toSorted(
    (a, b) =>
      queueOf(a, needed) - queueOf(b, needed) ||
      rank(a) - rank(b) ||
      turns.indexOf(a.name) - turns.indexOf(b.name),
  );
  if (fit.length < count)
    return { kind: "wait", reason: waitsFor(count, needed, open, avoidReason) };
  return {
    kind: "chosen",
    datacenters: byName(sorted.slice(0, count), cores === null ? null : needed),
  };
}

function named(routing: Routing, cores: number | null, rooms: readonly DatacenterRoom[]): Choice {
  const { datacenters: names } = routing;
  const chosen = names.flatMap((name) => rooms.find((one) => one.name === name) ?? []);
  const away = names.filter((name) => !chosen.some((one) => one.name === name));
  if (away.length > 0) return { kind: "wait", reason: `${away.join(", ")}: cannot be reached` };
  const weights = chosen.map(({ name }) => weightOf(routing, name) ?? 1);
  const needed = coresOf(cores, routing, weights);
  const short = chosen.some((room, at) => !isEligible(room, needed?.[at] ?? 1));
  const most = Math.max(...(needed ?? [1]));
  if (short) return { kind: "wait", reason: waitsFor(names.length, most, chosen) };
  return { kind: "chosen", datacenters: byName(chosen, cores === null ? null : 1) };
}

/** Reason to avoid a datacenter; null if the job may go there. */
export function whyAvoided(
  avoided: ReadonlyMap<string, Avoided>,
  name: string,
  now: number,
): string | null {
  const { until = 0, why = null } = avoided.get(name) ?? {};
  return until > now ? why : null;
}

/** Whether it has enough free cores, or a queue for them. */
function isEligible({ cores, coresFree, jobsQueued }: DatacenterRoom, needed: number): boolean {
  return coresFree >= needed || (jobsQueued > 0 && cores >= needed);
}

/** Queued jobs per core; 0 if the job need not wait. */
function queueOf({ cores, coresFree, jobsQueued }: DatacenterRoom, needed: number): number {
  return coresFree >= needed ? 0 : jobsQueued / cores;
}

/** Sorted by name: two jobs that need the same datacenters never deadlock. (T14) */
function byName(
  rooms: readonly DatacenterRoom[],
  cores: number | null,
): readonly ChosenDatacenter[] {
  return rooms
    .toSorted((a, b) => order(a.name, b.name))
    .map(({ coresFree, name }) => ({ name, cores: cores ?? coresFree }));
}

function waitsFor(
  count: number,
  needed: number,
  rooms: readonly DatacenterRoom[],
  avoidReason: (name: string) => string | null = () => null,
): string {
  if (rooms.length === 0) return "no datacenter can be reached";
  const listed = rooms.map(({ cores, coresFree, name }) => {
    const why = coresFree >= needed ? avoidReason(name) : null;
    const free = `${name} ${coresFree} of ${cores}`;
    return why === null ? free : `${free} (but ${why})`;
  });
  const free = listed.join(", ");
  const where = count === 1 ? "in a datacenter" : `in each of ${count} datacenters`;
  const isHopeless = rooms.filter(({ cores }) => cores >= needed).length < count;
  const never = isHopeless ? "; they never have so many: add workers, or ask for fewer cores" : "";
  return `it needs ${formatCounted(needed, "free core")} ${where}; there are: ${free}${never}`;
}

function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
