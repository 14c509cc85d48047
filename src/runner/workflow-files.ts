/** A workflow file as `run` accepts it on another machine: one module, and the data files that it reads. */

import { basename, dirname, extname, resolve } from "node:path";
import { bundleWorkflow, workflowSource } from "./bundle.ts";
import { RunError } from "./errors.ts";
import { type FilesOfJob, jobFiles } from "./job-files.ts";
import { loadWorkflow } from "./load-workflow.ts";
import { overridesOf } from "./run-options.ts";

export async function workflowFiles(
  file: string,
  env: Readonly<Record<string, string>>,
  warn: (line: string) => void,
): Promise<FilesOfJob> {
  const path = resolve(file);
  const name = `${basename(path, extname(path))}.mjs`;
  const module = { name, bytes: await workflowSource(file), folder: dirname(path) };
  return jobFiles(module, await dataPaths(file, env, warn), warn);
}

/** Loads its code to find the paths; the other machine may have what is missing here, such as a variable. */
async function dataPaths(
  file: string,
  env: Readonly<Record<string, string>>,
  warn: (line: string) => void,
): Promise<readonly string[]> {
  const bundle = await bundleWorkflow(file);
  try {
    const loading = { name: file, overrides: overridesOf({ env }), warn };
    return (await loadWorkflow(bundle.address, bundle.folder, loading)).paths;
  } catch (error) {
    if (!(error instanceof RunError)) throw error;
    warn(`${file} does not load here, so data files that it may have are not sent`);
    warn(error.message);
    return [];
  } finally {
    await bundle.remove();
  }
}
