/**
 * Stands for the bundle of a workflow file: exports whatever the test put on the table. The list itself, not a copy:
 * modules are never freed, and what they reference would stay with all its runs.
 */

export { onTheTable as workflows } from "./table.ts";
