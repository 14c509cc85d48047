/** Batches changes of leadership for the log: a failover moves thousands of groups. */

/** Delay after the first change. */
const REPORT_EVERY_MS = 1_000;

export class LeadChanges {
  #gained = 0;
  #lost = 0;
  reportAt = Number.POSITIVE_INFINITY;

  note(leads: boolean, now: number): void {
    if (leads) this.#gained++;
    else this.#lost++;
    this.reportAt = Math.min(this.reportAt, now + REPORT_EVERY_MS);
  }

  take(): { readonly gained: number; readonly lost: number } {
    const changes = { gained: this.#gained, lost: this.#lost };
    this.#gained = 0;
    this.#lost = 0;
    this.reportAt = Number.POSITIVE_INFINITY;
    return changes;
  }
}
