/** Values that a workflow passes to others when its users are done. (CTX-7) */

import { heaviestPath, PROVIDED_BYTES_MAX, valueBytes } from "../core/load/job/value-size.ts";
import type { WorkflowDefinition } from "../workflow/definition.ts";

export function provide(
  definition: WorkflowDefinition,
  seen: { readonly last: Readonly<Record<string, unknown>>; readonly setup: unknown },
  threw: (key: string, error: unknown) => void,
): Record<string, unknown> {
  const provided: Record<string, unknown> = {};
  for (const { key, value } of definition.provides) {
    try {
      // A value that cannot be cloned cannot be sent, and must not affect the other values.
      const given = structuredClone(value(seen));
      const bytes = valueBytes(given);
      if (bytes > PROVIDED_BYTES_MAX) throw new RangeError(tooLarge(given, bytes));
      provided[key] = given;
    } catch (error) {
      threw(key, error);
    }
  }
  return provided;
}

function tooLarge(value: unknown, bytes: number): string {
  const path = heaviestPath(value);
  const where = path === "" ? "" : `, most of it at ${path.replace(/^\./, "")}`;
  return `the value takes ${bytes} bytes${where}; at most ${PROVIDED_BYTES_MAX} are handed on`;
}
