/**
 * Packages that a protocol needs and hyperscale does not bring along: found where the workflow lies, else
 * where hyperscale is installed. Absent means a sentence with the line to type, before the run.
 */

import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { workflowFolder } from "../protocol.ts";

export async function loadDriver<Module>(packageName: string, forWhat: string): Promise<Module> {
  const folder = workflowFolder() ?? process.cwd();
  for (const from of [join(folder, "workflow.js"), import.meta.url]) {
    const address = found(packageName, from);
    if (address !== null) return (await import(address)) as Module;
  }
  throw new Error(
    `${forWhat} needs the package ${packageName}, which is not installed: npm install ${packageName}`,
  );
}

function found(packageName: string, from: string): string | null {
  try {
    return pathToFileURL(createRequire(from).resolve(packageName)).href;
  } catch {
    return null;
  }
}
