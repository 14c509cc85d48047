/**
 * When a job of each tenant last returned cores, updated as jobs finish and are forgotten, so that ordering the queue
 * does not scan all remembered jobs.
 */

/** Fields read of a finished job. */
interface EndedJob {
  readonly needs: { readonly tenant?: string | null };
  readonly status: string;
  readonly summary: string | null;
  readonly endedAt?: number;
}

/** Tenant of jobs that name none. */
const DEFAULT_TENANT = "default";

export function tenantOf({ tenant }: EndedJob["needs"]): string {
  return tenant ?? DEFAULT_TENANT;
}

export class ServedTenants {
  readonly #last = new Map<string, number>();
  /** Times of the tenant's remembered jobs; the tenant is forgotten with the last of them. */
  readonly #times = new Map<string, number[]>();

  get last(): ReadonlyMap<string, number> {
    return this.#last;
  }

  add(job: EndedJob): void {
    const at = servedAt(job);
    if (at === null) return;
    const tenant = tenantOf(job.needs);
    this.#last.set(tenant, Math.max(at, this.#last.get(tenant) ?? 0));
    const times = this.#times.get(tenant);
    if (times === undefined) this.#times.set(tenant, [at]);
    else times.push(at);
  }

  forget(job: EndedJob): void {
    const at = servedAt(job);
    const tenant = tenantOf(job.needs);
    const times = this.#times.get(tenant) ?? [];
    const place = at === null ? -1 : times.indexOf(at);
    if (place < 0) return;
    times.splice(place, 1);
    if (times.length === 0) {
      this.#times.delete(tenant);
      this.#last.delete(tenant);
    } else if (at === this.#last.get(tenant)) this.#last.set(tenant, times.reduce(later));
  }

  clear(): void {
    this.#last.clear();
    this.#times.clear();
  }
}

function later(one: number, other: number): number {
  return Math.max(one, other);
}

/** Null: the job had no cores, or the time of their return is unknown. */
function servedAt({ endedAt, status, summary }: EndedJob): number | null {
  const neverRan = status === "CANCELLED" && summary === null;
  return endedAt === undefined || neverRan ? null : endedAt;
}
