/**
 * When a job of each tenant last gave cores back, counted as jobs end and are forgotten: a queue that is put in order
 * at every change need not pass all that is remembered.
 */

/** What it reads of a job that has ended. */
interface EndedJob {
  readonly needs: { readonly tenant?: string | null };
  readonly status: string;
  readonly summary: string | null;
  readonly endedAt?: number;
}

/** Whoever names none. */
const DEFAULT_TENANT = "default";

export function tenantOf({ tenant }: EndedJob["needs"]): string {
  return tenant ?? DEFAULT_TENANT;
}

export class ServedTenants {
  readonly #last = new Map<string, number>();
  /** Jobs of each that are remembered: with the last of them its tenant is forgotten. */
  readonly #jobs = new Map<string, number>();

  get last(): ReadonlyMap<string, number> {
    return this.#last;
  }

  add(job: EndedJob): void {
    const at = servedAt(job);
    if (at === null) return;
    const tenant = tenantOf(job.needs);
    this.#last.set(tenant, Math.max(at, this.#last.get(tenant) ?? 0));
    this.#jobs.set(tenant, (this.#jobs.get(tenant) ?? 0) + 1);
  }

  forget(job: EndedJob): void {
    if (servedAt(job) === null) return;
    const tenant = tenantOf(job.needs);
    const left = (this.#jobs.get(tenant) ?? 0) - 1;
    if (left > 0) this.#jobs.set(tenant, left);
    else {
      this.#jobs.delete(tenant);
      this.#last.delete(tenant);
    }
  }

  clear(): void {
    this.#last.clear();
    this.#jobs.clear();
  }
}

/** Null: it has had no cores, or nobody says when it gave them back. */
function servedAt({ endedAt, status, summary }: EndedJob): number | null {
  const neverRan = status === "CANCELLED" && summary === null;
  return endedAt === undefined || neverRan ? null : endedAt;
}
