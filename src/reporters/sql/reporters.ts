/** Databases that speak SQL: one row per value, a batch per statement. */

import type { ReporterDefinition } from "../definition.ts";
import { mysql } from "./mysql.ts";
import { postgres } from "./postgres.ts";
import { sqlite } from "./sqlite.ts";

export const definitions: readonly ReporterDefinition[] = [postgres, mysql, sqlite];
