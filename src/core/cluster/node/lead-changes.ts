/** Changes of who leads, told together: a take-over moves thousands of groups. */

/** This long after the first. */
const TELL_EVERY_MS = 1_000;

export class LeadChanges {
  #gained = 0;
  #lost = 0;
  tellAt = Number.POSITIVE_INFINITY;

  note(leads: boolean, now: number): void {
    if (leads) this.#gained++;
    else this.#lost++;
    this.tellAt = Math.min(this.tellAt, now + TELL_EVERY_MS);
  }

  take(): { readonly gained: number; readonly lost: number } {
    const changes = { gained: this.#gained, lost: this.#lost };
    this.#gained = 0;
    this.#lost = 0;
    this.tellAt = Number.POSITIVE_INFINITY;
    return changes;
  }
}
