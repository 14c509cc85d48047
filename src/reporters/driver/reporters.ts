/** Databases and queues that accept documents, messages or rows over a persistent connection. */

import type { ReporterDefinition } from "../definition.ts";
import { cassandra } from "./cassandra.ts";
import { kafka } from "./kafka.ts";
import { mongodb } from "./mongodb.ts";
import { redis } from "./redis.ts";

export const definitions: readonly ReporterDefinition[] = [mongodb, cassandra, kafka, redis];
