/** Back-ends that accept batches over HTTP. */

import type { ReporterDefinition } from "../definition.ts";
import { influxdb } from "./influxdb.ts";
import { prometheus, pushgateway } from "./prometheus.ts";
import { datadog, honeycomb, newrelic, otlp, webhook } from "./services.ts";

export const definitions: readonly ReporterDefinition[] = [
  influxdb,
  prometheus,
  pushgateway,
  otlp,
  datadog,
  newrelic,
  honeycomb,
  webhook,
];
