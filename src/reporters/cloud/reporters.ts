/** Services that require every request to be signed, or to carry a token obtained with a signature. */

import type { ReporterDefinition } from "../definition.ts";
import { aws } from "./aws.ts";
import { bigquery } from "./bigquery.ts";
import { bigtable } from "./bigtable.ts";
import { cosmosdb } from "./cosmosdb.ts";
import { snowflake } from "./snowflake.ts";

export const definitions: readonly ReporterDefinition[] = [
  ...aws,
  bigquery,
  bigtable,
  cosmosdb,
  snowflake,
];
