/** Back-ends that take batches over HTTP. */

import type { ReporterDefinition } from "../definition.ts";
import { influxdb } from "./influxdb.ts";

export const definitions: readonly ReporterDefinition[] = [influxdb];
