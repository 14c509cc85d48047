/**
 * Packages that a protocol needs and hyperscale does not bundle: resolved beside the workflow, else beside hyperscale.
 * When one is missing, an error before the run shows the command that installs it.
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
  const [name] = packageName.split("/lib/");
  throw new Error(
    `${forWhat} needs the package ${name}, which is not installed: npm install ${name}`,
  );
}

/** A package that is loaded once, before the run. */
export class OptionalPackage<Module> {
  readonly #name: string;
  readonly #forWhat: string;
  #loading: Promise<Module> | null = null;
  #module: Module | null = null;

  /** `name` may be a path inside the package: "nodemailer/lib/mail-composer". */
  constructor(name: string, forWhat: string) {
    this.#name = name;
    this.#forWhat = forWhat;
  }

  async load(): Promise<void> {
    // Loaders differ in how they treat a CommonJS module that is marked as an ES module.
    this.#loading ??= loadDriver<Module & { readonly default?: Module }>(
      this.#name,
      this.#forWhat,
    ).then((loaded) => loaded.default ?? loaded);
    this.#module = await this.#loading;
  }

  get module(): Module {
    if (this.#module === null) throw new Error(`${this.#name} is loaded when a run is prepared`);
    return this.#module;
  }
}

function found(packageName: string, from: string): string | null {
  try {
    return pathToFileURL(createRequire(from).resolve(packageName)).href;
  } catch {
    return null;
  }
}
