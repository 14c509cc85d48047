/** Remarks that count something, by workflow and topic: those of several cores are added up. */

import { NameCounts } from "./name-counts.ts";

const TEXTS = {
  notTornDown: (total: number, names: string) =>
    `userTeardown of ${total} users did not run to its end: they were cut off ${names}`,
  unawaited: (total: number, names: string) =>
    `${total} calls were under way when the body of their iteration ended, which waited for ` +
    `them: ${names}. Write await before step(…)`,
  ended: (total: number, names: string) => `${total} iterations ended early, by: ${names}`,
};

type Topic = keyof typeof TEXTS;
/** In the order of their numbers on the wire. */
export const COUNTED_TOPICS = [
  "notTornDown",
  "unawaited",
  "ended",
] as const satisfies readonly Topic[];

export interface CountedNote {
  readonly workflow: string;
  readonly topic: Topic;
  readonly name: string;
  readonly count: number;
}

export class CountedNotes {
  readonly #notes = new Map<
    string,
    { readonly workflow: string; readonly topic: Topic; readonly names: NameCounts }
  >();

  add({ count, name, topic, workflow }: CountedNote): void {
    const key = `${topic} ${workflow}`;
    const note = this.#notes.get(key) ?? { workflow, topic, names: new NameCounts() };
    this.#notes.set(key, note);
    note.names.add(name, count);
  }

  get list(): CountedNote[] {
    return [...this.#notes.values()].flatMap(({ names, topic, workflow }) =>
      names.counts.map(([name, count]) => ({ workflow, topic, name, count })),
    );
  }

  get texts(): string[] {
    return [...this.#notes.values()].map(({ names: { counts, total }, topic, workflow }) => {
      const names = counts.map(([name, count]) => `${name} (${count})`).join(", ");
      return `"${workflow}": ${TEXTS[topic](total, names)}`;
    });
  }
}
