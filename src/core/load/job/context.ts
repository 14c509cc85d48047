/**
 * The values that finished workflows hand to those that depend on them.
 *
 *   store    provider workflow → key → (value, timestamp, source)     last write wins, CCP-12
 *   view     what one consumer may see: both sides must have named each other (CTX-3)
 */

import type { WorkflowManifest } from "./manifest.ts";

/** Provider workflow → key → value; plain data, fit for a message. */
export type ContextView = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

interface ContextEntry {
  readonly value: unknown;
  readonly timestamp: number;
  /** The writer: breaks ties between equal timestamps. */
  readonly source: string | null;
}

export class ContextStore {
  readonly #workflows = new Map<string, Map<string, ContextEntry>>();

  /** False when a later or equal write is already there (CCP-12). */
  apply(workflow: string, key: string, entry: ContextEntry): boolean {
    let keys = this.#workflows.get(workflow);
    if (keys === undefined) {
      keys = new Map();
      this.#workflows.set(workflow, keys);
    }
    const held = keys.get(key);
    if (held !== undefined && !supersedes(entry, held)) return false;
    keys.set(key, entry);
    return true;
  }

  get(workflow: string, key: string): ContextEntry | undefined {
    return this.#workflows.get(workflow)?.get(key);
  }

  keysOf(workflow: string): readonly string[] {
    return [...(this.#workflows.get(workflow)?.keys() ?? [])];
  }
}

function supersedes(entry: ContextEntry, held: ContextEntry): boolean {
  if (entry.timestamp !== held.timestamp) return entry.timestamp > held.timestamp;
  return entry.source !== null && held.source !== null && entry.source > held.source;
}

/** Context sent to a consumer: values of its dependencies that both sides agreed on. */
export function contextFor(
  consumer: WorkflowManifest,
  providers: readonly WorkflowManifest[],
  context: ContextStore,
): ContextView {
  const view: [string, Record<string, unknown>][] = [];
  for (const provider of providers) {
    if (!consumer.dependsOn.includes(provider.name)) continue;
    const uses = consumer.uses.filter(({ from }) => from.includes(provider.name));
    const values: [string, unknown][] = [];
    for (const { key, to } of provider.provides) {
      if (!to.includes(consumer.name)) continue;
      if (!uses.some(({ keys }) => keys.length === 0 || keys.includes(key))) continue;
      const entry = context.get(provider.name, key);
      if (entry !== undefined) values.push([key, entry.value]);
    }
    if (values.length > 0) view.push([provider.name, Object.fromEntries(values)]);
  }
  return Object.fromEntries(view);
}
