/**
 * A graph as clients write it: tasks by name, whose `depends_on` names others of the graph or ids of existing tasks.
 * Everything is validated before anything is stored.
 */

import { createHash } from "node:crypto";
import { z } from "zod";
import { QUEUE_LIMITS } from "../../core/queue/defaults.ts";
import { QueueError } from "../../core/queue/errors.ts";
import { graphProblem } from "../../core/queue/graph.ts";
import { canonicalJson } from "../../core/queue/placement.ts";
import {
  contentHashOf,
  parseParams,
  parseSubmit,
  type SubmitRequest,
  submitSchema,
  taskId,
  taskKey,
} from "./submit-request.ts";
import type { NewGraph } from "./types.ts";

const graphSchema = z.strictObject({
  tasks: z.record(z.string(), z.unknown()),
  /** The same key with the same content is one graph. */
  idempotency_key: taskKey.nullish(),
});

/** Names of the same graph, or ids. */
const dependsOn = z
  .array(z.union([taskId, z.string()]))
  .max(QUEUE_LIMITS.dependenciesMax)
  .nullish()
  .transform((list) => list ?? []);

/** A task of a graph. The key belongs to the graph, so that all of it is stored or none. */
const member = submitSchema
  .omit({ idempotency_key: true, unique_key: true })
  .extend({ depends_on: dependsOn });

export type GraphSubmit<Names extends string = string> = Omit<
  SubmitRequest,
  "depends_on" | "idempotency_key" | "unique_key"
> & { readonly depends_on?: readonly (Names | `${number}` | number)[] | null | undefined };

interface Member {
  readonly name: string;
  readonly request: z.output<typeof member>;
  /** Dependencies inside the graph, out of its `depends_on`. */
  readonly after: readonly string[];
}

export function parseGraph(params: unknown, defaultAttempts: number): NewGraph {
  const { tasks: given, idempotency_key: key } = parseParams(graphSchema, params);
  const entries = Object.entries(given);
  // Before checking each: there may be millions.
  if (entries.length > QUEUE_LIMITS.graphTasksMax) refuseGraph(entries.length);
  const members = entries.map(([name, value]) => inTask(name, () => memberOf(name, value)));
  const problem = graphProblem(new Map(members.map(({ name, after }) => [name, after])));
  if (problem !== undefined) throw new QueueError("INVALID_PARAMS", problem);
  const places = new Map(members.map(({ name }, place) => [name, place]));
  return {
    tasks: members.map(({ name, request }) => {
      const ids = request.depends_on.filter((one) => typeof one === "number");
      return inTask(name, () => parseSubmit({ ...request, depends_on: ids }, defaultAttempts));
    }),
    names: members.map(({ name }) => name),
    after: members.map(({ after }) => after.flatMap((name) => places.get(name) ?? [])),
    idempotencyKey: key ?? undefined,
    contentHash: hashOf(members),
  };
}

function refuseGraph(tasks: number): never {
  const most = `a graph has at most ${QUEUE_LIMITS.graphTasksMax} tasks`;
  throw new QueueError("INVALID_PARAMS", `${most}, and this one ${tasks}`);
}

function memberOf(name: string, value: unknown): Member {
  const request = parseParams(member, value);
  const names = request.depends_on.filter((one) => typeof one === "string");
  return { name, request, after: [...new Set(names)] };
}

/** An error names its task. */
function inTask<Value>(name: string, parse: () => Value): Value {
  try {
    return parse();
  } catch (error) {
    if (!(error instanceof QueueError)) throw error;
    throw new QueueError(error.code, `tasks.${name}: ${error.message}`);
  }
}

function hashOf(members: readonly Member[]): string {
  const content = members.map(({ name, request, after }) => {
    const ids = request.depends_on.filter((one) => typeof one === "number");
    return [
      name,
      { task: contentHashOf({ ...request, depends_on: ids }), after: [...after].sort() },
    ];
  });
  return createHash("sha256")
    .update(canonicalJson(Object.fromEntries(content)))
    .digest("base64url");
}
