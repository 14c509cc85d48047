/**
 * Where a job runs (GREQ-2). Named datacenters are taken as they are; else the preferred ones that have room come
 * first, then the others in the order that the gate asks them in. A job that must wait is told what for.
 *
 * Where jobs wait for cores, none is free for long: there a job waits with them, each tenant in its turn. Kept at the
 * gate, it would be behind all of them, and behind whoever joins them.
 */

import { formatCounted } from "../../load/results/format.ts";
import type { Routing } from "../messages.ts";
import type { DatacenterRoom } from "./datacenters.ts";
import { coresOf, weightOf } from "./job-parts.ts";

/** `cores`: that were free, which is its weight in a split; the same everywhere for a job that wants so many. */
interface ChosenDatacenter {
  readonly name: string;
  readonly cores: number;
}

type Choice =
  | { readonly kind: "chosen"; readonly datacenters: readonly ChosenDatacenter[] }
  | { readonly kind: "wait"; readonly reason: string };

/** It has failed the job a moment ago: why, and until when that counts. */
export interface Avoided {
  readonly why: string;
  readonly until: number;
}

interface Rooms {
  readonly rooms: readonly DatacenterRoom[];
  readonly avoided: ReadonlyMap<string, Avoided>;
  readonly now: number;
  /** The order in which these are asked. */
  readonly inOrder: (names: readonly string[]) => readonly string[];
}

/** `cores`: that the job needs; null: whatever is free. */
export function chooseDatacenters(
  routing: Routing,
  cores: number | null,
  { avoided, inOrder, now, rooms }: Rooms,
): Choice {
  const { count, datacenters, prefer, strict } = routing;
  if (datacenters.length > 0) return named(routing, cores, rooms);
  const [needed = 1] = coresOf(cores, routing, Array<number>(count).fill(1)) ?? [];
  const rank = ({ name }: DatacenterRoom): number =>
    prefer.includes(name) ? prefer.indexOf(name) : prefer.length;
  const open = rooms.filter(({ name }) => !strict || prefer.includes(name));
  const whyNot = (name: string): string | null => whyAvoided(avoided, name, now);
  const fit = open.filter((room) => hasTurn(room, needed) && whyNot(room.name) === null);
  const turns = inOrder(fit.map(({ name }) => name));
  const sorted = fit.toSorted(
    (a, b) =>
      queueOf(a, needed) - queueOf(b, needed) ||
      rank(a) - rank(b) ||
      turns.indexOf(a.name) - turns.indexOf(b.name),
  );
  if (fit.length < count) return { kind: "wait", reason: waitsFor(count, needed, open, whyNot) };
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
  const short = chosen.some((room, at) => !hasTurn(room, needed?.[at] ?? 1));
  const most = Math.max(...(needed ?? [1]));
  if (short) return { kind: "wait", reason: waitsFor(names.length, most, chosen) };
  return { kind: "chosen", datacenters: byName(chosen, cores === null ? null : 1) };
}

/** Null: the job may go there. */
export function whyAvoided(
  avoided: ReadonlyMap<string, Avoided>,
  name: string,
  now: number,
): string | null {
  const { until = 0, why = null } = avoided.get(name) ?? {};
  return until > now ? why : null;
}

/** It has so many free cores, or a queue for them. */
function hasTurn({ cores, coresFree, jobsQueued }: DatacenterRoom, needed: number): boolean {
  return coresFree >= needed || (jobsQueued > 0 && cores >= needed);
}

/** Jobs that wait there for each core; 0 where it need not wait. */
function queueOf({ cores, coresFree, jobsQueued }: DatacenterRoom, needed: number): number {
  return coresFree >= needed ? 0 : jobsQueued / cores;
}

/** In the order of their names: two jobs that need the same ones never wait for each other. (T14) */
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
  whyNot: (name: string) => string | null = () => null,
): string {
  if (rooms.length === 0) return "no datacenter can be reached";
  const told = rooms.map(({ cores, coresFree, name }) => {
    const why = coresFree >= needed ? whyNot(name) : null;
    const free = `${name} ${coresFree} of ${cores}`;
    return why === null ? free : `${free} (but ${why})`;
  });
  const free = told.join(", ");
  const where = count === 1 ? "in a datacenter" : `in each of ${count} datacenters`;
  const isHopeless = rooms.filter(({ cores }) => cores >= needed).length < count;
  const never = isHopeless ? "; they never have so many: add workers, or ask for fewer cores" : "";
  return `it needs ${formatCounted(needed, "free core")} ${where}; there are: ${free}${never}`;
}

function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
