/** Stands for the bundle of a workflow file: exports whatever the test put on the table. */

import { onTheTable } from "./table.ts";

export const workflows = [...onTheTable];
