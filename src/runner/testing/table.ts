import type { WorkflowDefinition } from "../../workflow/definition.ts";

/** Exports of the next bundle. */
export const onTheTable: { readonly definition: WorkflowDefinition }[] = [];
