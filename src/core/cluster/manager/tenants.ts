/**
 * Fair queue for several tenants: the tenant with the fewest cores is next, each with its jobs in order of submission,
 * so that a hundred jobs of one delay others by one job, not a hundred.
 *
 * A tenant is a name in the submission: this is fairness between cooperating teams, not isolation.
 */

import { clipText } from "../../base/text.ts";
import {
  type DatacenterJob,
  type DatacenterState,
  type JobNeeds,
  WAITING_MAX,
} from "./datacenter-state.ts";
import { tenantOf } from "./served-tenants.ts";

/** Limits of one tenant; 0: unlimited. */
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
/** Retry delay of a tenant whose part of a queue is full. */
export const FULL_RETRY_MS = 2_000;
/** Region, milliseconds, gate and number of a gate's job, then its datacenter part. */
const GATE_KEY = /^[a-z0-9]+-(\d{1,15})-[a-z0-9]+-\d+\//;
type Needs = Pick<JobNeeds, "cores" | "usefulCores" | "tenant">;

export function tenantProblem(tenant: string | null): string | null {
  if (tenant === null || TENANT.test(tenant)) return null;
  return `"${clipText(tenant, 64)}" names no tenant: 1 to 64 letters, digits, dots, dashes and underscores`;
}

/** Cores used by each tenant; tenants without cores are absent. */
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
 * Orders jobs by submission. Jobs that waited at gates arrive together when cores are free, in any order: a gate
 * submits under a key that begins with its own job id, which contains the time of acceptance.
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
 * Orders jobs as they would be served if each finished at once: fewest cores first, one job per tenant in turn. Ties,
 * which are the rule when a single core is assigned, go to the tenant served longest ago.
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
  // Sorting is stable: ties keep the order of submission.
  const order = new Map(queued.map((job, at) => [job, at]));
  return turns
    .sort(
      (a, b) =>
        a.cores - b.cores || a.at - b.at || (order.get(a.job) ?? 0) - (order.get(b.job) ?? 0),
    )
    .map(({ job }) => job);
}

/** A job without a core count uses what is free; it counts as one core, its minimum. */
function coresOf({ cores, usefulCores }: Needs): number {
  return Math.max(1, Math.min(cores ?? 1, usefulCores));
}

/** Cores that a job may get now; with the reason when these are fewer than it requests. */
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

/** One tenant may have up to this many times the free slots waiting, so that others always find a slot. */
const OF_FREE_ROOM = 9;

/** Why a tenant must wait before it submits more. `waiting`: tenant of each waiting job. */
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

/** Tenants of the waiting jobs in a datacenter. */
export function tenantsWaiting({ open }: Pick<DatacenterState, "open">): readonly string[] {
  return [...open.values()].flatMap(({ needs, phase }) =>
    phase === "queued" ? [tenantOf(needs)] : [],
  );
}
