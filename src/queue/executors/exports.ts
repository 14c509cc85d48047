/** Executors that a module exports: as its default, as `executors`, or each by its name. */

import { QueueError } from "../../core/queue/errors.ts";
import type { Executor, Executors } from "../worker/executor.ts";

export function executorsOf(module: Readonly<Record<string, unknown>>, source: string): Executors {
  const found: unknown = module["default"] ?? module["executors"] ?? module;
  const executors: Record<string, Executor> = {};
  for (const [name, value] of Object.entries(found ?? {})) {
    if (typeof value === "function") executors[name] = value as Executor;
  }
  if (Object.keys(executors).length === 0) {
    const form = "export default { name: async (input, context) => result }";
    throw new QueueError("INVALID_PARAMS", `${source} exports no executors: ${form}`);
  }
  return executors;
}
