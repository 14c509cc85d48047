/** The values a workflow hands to others when its users are done. (CTX-7) */

import type { WorkflowDefinition } from "../workflow/definition.ts";

export function provide(
  definition: WorkflowDefinition,
  seen: { readonly last: Readonly<Record<string, unknown>>; readonly setup: unknown },
  threw: (key: string, error: unknown) => void,
): Record<string, unknown> {
  const provided: Record<string, unknown> = {};
  for (const { key, value } of definition.provides) {
    try {
      // What cannot be copied cannot travel, and must not take the other values down with it.
      provided[key] = structuredClone(value(seen));
    } catch (error) {
      threw(key, error);
    }
  }
  return provided;
}
