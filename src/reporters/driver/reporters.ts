/** Databases and queues that take documents, messages or rows of their own kind over a connection that is kept. */

import type { ReporterDefinition } from "../definition.ts";
import { cassandra } from "./cassandra.ts";
import { kafka } from "./kafka.ts";
import { mongodb } from "./mongodb.ts";
import { redis } from "./redis.ts";

export const definitions: readonly ReporterDefinition[] = [mongodb, cassandra, kafka, redis];
