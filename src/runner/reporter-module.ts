/** Reporters from user code: `--report module=./reporter.ts` uses the default export of the file. */

import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Reporter } from "../reporters/reporter.ts";
import { bundleWorkflow } from "./bundle.ts";
import { RunError } from "./errors.ts";

const PREFIX = "module=";

export function isReporterModule(report: string | Reporter): report is string {
  return typeof report === "string" && report.startsWith(PREFIX);
}

export async function loadReporterModule(report: string): Promise<Reporter> {
  const file = report.slice(PREFIX.length);
  if (!existsSync(file)) throw new RunError(`report module: there is no file ${file}`, 2);
  const bundle = await bundleWorkflow(file);
  try {
    const { default: made } = (await import(bundle.address)) as { readonly default: unknown };
    if (isReporter(made)) return made;
  } catch (error) {
    throw new RunError(`report module ${file}: ${(error as Error).message}`, 2);
  } finally {
    await bundle.remove();
  }
  const where = pathToFileURL(resolve(file)).pathname;
  throw new RunError(`report module: ${where} must export a Reporter by default`, 2);
}

function isReporter(value: unknown): value is Reporter {
  if (typeof value !== "object" || value === null) return false;
  const { close, finish, name, start, target } = value as Partial<Record<keyof Reporter, unknown>>;
  const texts = [name, target].every((text) => typeof text === "string");
  return texts && [close, finish, start].every((part) => typeof part === "function");
}
