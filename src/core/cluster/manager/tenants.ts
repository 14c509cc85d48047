/**
 * Jobs of several tenants in one queue: whoever holds the fewest cores is next, each with its jobs in the order of
 * submission, so that a hundred jobs of one keep nobody else waiting for a hundred.
 *
 * A tenant is what a submission says it is: fairness between teams that mean well, no border between them.
 */

import { clipText } from "../../base/text.ts";
import {
  type DatacenterJob,
  type DatacenterState,
  type JobNeeds,
  WAITING_MAX,
} from "./datacenter-state.ts";
import { tenantOf } from "./served-tenants.ts";

/** What one of them may have at once; 0: as much as there is. */
export interface Quotas {
  readonly coresPerTenantMax: number;
  readonly coresPerJobMax: number;
  /** Jobs of one tenant that may wait. */
  readonly waitingPerTenantMax: number;
}

export const NO_QUOTAS: Quotas = {
  coresPerTenantMax: 0,
  coresPerJobMax: 0,
  waitingPerTenantMax: 0,
};

const TENANT = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
/** A tenant that has filled its part of a queue asks again after this. */
export const FULL_RETRY_MS = 2_000;
/** Region, milliseconds, gate and number of a gate's job, then the part of it that is asked for. */
const GATE_KEY = /^[a-z0-9]+-(\d{1,15})-[a-z0-9]+-\d+\//;
type Needs = Pick<JobNeeds, "cores" | "usefulCores" | "tenant">;

export function tenantProblem(tenant: string | null): string | null {
  if (tenant === null || TENANT.test(tenant)) return null;
  return `"${clipText(tenant, 64)}" names no tenant: 1 to 64 letters, digits, dots, dashes and underscores`;
}

/** Cores that jobs of each tenant hold; of a tenant that holds none, nothing. */
export function coresHeld({ open }: Pick<DatacenterState, "open">): ReadonlyMap<string, number> {
  const held = new Map<string, number>();
  for (const { grants, needs } of open.values()) {
    const cores = grants.reduce((sum, one) => sum + one.cores, 0);
    if (cores === 0) continue;
    const tenant = tenantOf(needs);
    held.set(tenant, (held.get(tenant) ?? 0) + cores);
  }
  return held;
}

/**
 * In the order in which they were submitted. Jobs that waited at gates come all at once when cores are free, in any
 * order: a gate asks under a key that begins with its own id of the job, which says when it was accepted.
 */
export function byAge(queued: readonly DatacenterJob[]): readonly DatacenterJob[] {
  const ages = new Map(queued.map((job) => [job, acceptedAt(job)]));
  return queued.toSorted((a, b) => (ages.get(a) ?? 0) - (ages.get(b) ?? 0));
}

function acceptedAt({ createdAt, key }: DatacenterJob): number {
  const [, milliseconds] = GATE_KEY.exec(key) ?? [];
  return milliseconds === undefined ? createdAt : Number(milliseconds);
}

/**
 * In the order in which they would be served if each ended at once: fewest cores first, one of each in turn. Among
 * those who hold as many, as nobody does where one core is given anew, who was served last comes last.
 */
export function inTurn(
  queued: readonly DatacenterJob[],
  held: (tenant: string) => number,
  servedAt: (tenant: string) => number = () => 0,
): readonly DatacenterJob[] {
  const rows = new Map<string, DatacenterJob[]>();
  for (const job of queued) {
    const tenant = tenantOf(job.needs);
    const row = rows.get(tenant);
    if (row === undefined) rows.set(tenant, [job]);
    else row.push(job);
  }
  const turns = [...rows].flatMap(([tenant, row]) => {
    let before = held(tenant);
    const at = servedAt(tenant);
    return row.map((job) => {
      const turn = { job, cores: before, at };
      before += coresOf(job.needs);
      return turn;
    });
  });
  // Sorting is stable: among equals the first submitted comes first.
  const order = new Map(queued.map((job, at) => [job, at]));
  return turns
    .sort(
      (a, b) =>
        a.cores - b.cores || a.at - b.at || (order.get(a.job) ?? 0) - (order.get(b.job) ?? 0),
    )
    .map(({ job }) => job);
}

/** A job that names none takes what is free; it counts as one, which it takes at least. */
function coresOf({ cores, usefulCores }: Needs): number {
  return Math.max(1, Math.min(cores ?? 1, usefulCores));
}

/** Cores that a job may get now; with the reason when these are fewer than it asks for. */
export function allowed(
  quotas: Quotas,
  needs: Needs,
  held: number,
): { readonly cores: number; readonly reason: string | null } {
  const { cores, usefulCores } = needs;
  const { coresPerJobMax, coresPerTenantMax } = quotas;
  const perJob = coresPerJobMax === 0 ? Number.POSITIVE_INFINITY : coresPerJobMax;
  const left = coresPerTenantMax === 0 ? perJob : Math.max(0, coresPerTenantMax - held);
  const most = Math.min(perJob, left);
  const least = cores === null ? 1 : Math.min(cores, usefulCores);
  if (least <= most) return { cores: most, reason: null };
  const holds = `tenant ${tenantOf(needs)} holds ${held} of the ${coresPerTenantMax} cores that it may have`;
  return { cores: 0, reason: `it needs ${least} ${least === 1 ? "core" : "cores"}, ${holds}` };
}

/** Why a job can never run under these quotas, whatever is free. */
export function quotaProblem(quotas: Quotas, { cores, usefulCores }: Needs): string | null {
  const least = cores === null ? 1 : Math.min(cores, usefulCores);
  const { coresPerJobMax, coresPerTenantMax } = quotas;
  if (coresPerJobMax > 0 && least > coresPerJobMax)
    return `it asks for ${least} cores; one job may have ${coresPerJobMax} (coresPerJob)`;
  if (coresPerTenantMax > 0 && least > coresPerTenantMax)
    return `it asks for ${least} cores; one tenant may have ${coresPerTenantMax} (coresPerTenant)`;
  return null;
}

/** One tenant may have so many times as many jobs waiting as there is room for: there is always room for others. */
const OF_FREE_ROOM = 9;

/** Why a tenant must wait before it submits more. `waiting`: whose jobs wait, one for each. */
export function queueProblem(
  { waitingPerTenantMax }: Quotas,
  waiting: readonly string[],
  tenant: string,
): string | null {
  const all = waiting.length;
  const own = waiting.filter((one) => one === tenant).length;
  if (own > 0 && own >= OF_FREE_ROOM * (WAITING_MAX - all))
    return `${own} of the ${all} jobs that wait are of tenant ${tenant}: the rest of the queue is for others`;
  if (waitingPerTenantMax === 0 || own < waitingPerTenantMax) return null;
  return `${own} jobs of tenant ${tenant} wait, as many as may (waitingPerTenant): one of them has to begin`;
}

/** Whose jobs wait in a datacenter. */
export function tenantsWaiting({ open }: Pick<DatacenterState, "open">): readonly string[] {
  return [...open.values()].flatMap(({ needs, phase }) =>
    phase === "queued" ? [tenantOf(needs)] : [],
  );
}
