/**
 * Validates a graph of tasks that name each other before any of it is stored. Names refer to tasks of the graph; a
 * cycle is rejected with its path.
 */

import { QUEUE_LIMITS } from "./defaults.ts";

/** Begins with a letter: a decimal number is the id of an existing task. */
const NAME = /^[A-Za-z][\w.-]{0,63}$/;
const NAME_RULE = "a letter, then up to 63 letters, digits, dots, dashes, underscores";
/** Names of a cycle shown in the error. */
const CIRCLE_NAMES_MAX = 10;

/** Dependencies of each task of a graph, by name. */
type TaskGraph = ReadonlyMap<string, readonly string[]>;

/** Returns why these tasks cannot be submitted together; undefined when they can. */
export function graphProblem(graph: TaskGraph): string | undefined {
  const { graphTasksMax, graphEdgesMax } = QUEUE_LIMITS;
  if (graph.size === 0) return "a graph has at least one task";
  if (graph.size > graphTasksMax)
    return `a graph has at most ${graphTasksMax} tasks, and this one ${graph.size}`;
  let edges = 0;
  for (const [name, after] of graph) {
    if (!NAME.test(name)) return `"${name.slice(0, 80)}" is no name of a task: ${NAME_RULE}`;
    edges += after.length;
    for (const other of after)
      if (!graph.has(other))
        return `tasks.${name}: depends_on names "${other}", which is no task of this graph`;
  }
  if (edges > graphEdgesMax)
    return `a graph has at most ${graphEdgesMax} dependencies, and this one ${edges}`;
  const circle = circleOf(graph);
  if (circle === undefined) return undefined;
  const more = circle.length > CIRCLE_NAMES_MAX ? ["…"] : [];
  const way = [...circle.slice(0, CIRCLE_NAMES_MAX), ...more, circle[0]];
  return `tasks wait for each other in a circle: ${way.join(" → ")}`;
}

/** Returns names of tasks of which each waits for the next, and the last for the first. */
function circleOf(graph: TaskGraph): readonly string[] | undefined {
  const stuck = stuckIn(graph);
  const [start] = stuck;
  if (start === undefined) return undefined;
  // Every stuck task waits for another stuck one: following them meets a name again.
  const path: string[] = [];
  const places = new Map<string, number>();
  for (let name: string | undefined = start; name !== undefined; ) {
    const seen = places.get(name);
    if (seen !== undefined) return path.slice(seen);
    places.set(name, path.length);
    path.push(name);
    name = graph.get(name)?.find((other) => stuck.has(other));
  }
  return path;
}

/** Tasks that could never start: what remains when all others have finished. */
function stuckIn(graph: TaskGraph): ReadonlySet<string> {
  const open = new Map<string, number>();
  const dependents = new Map<string, string[]>();
  const free: string[] = [];
  for (const [name, after] of graph) {
    open.set(name, after.length);
    if (after.length === 0) free.push(name);
    for (const other of after) {
      const list = dependents.get(other);
      if (list === undefined) dependents.set(other, [name]);
      else list.push(name);
    }
  }
  for (let name = free.pop(); name !== undefined; name = free.pop()) {
    open.delete(name);
    for (const dependent of dependents.get(name) ?? []) {
      const left = (open.get(dependent) ?? 0) - 1;
      open.set(dependent, left);
      if (left === 0) free.push(dependent);
    }
  }
  return new Set(open.keys());
}
