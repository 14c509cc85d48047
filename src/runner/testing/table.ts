import type { WorkflowDefinition } from "../../workflow/definition.ts";

/** What the next bundle exports. */
export const onTheTable: { readonly definition: WorkflowDefinition }[] = [];
