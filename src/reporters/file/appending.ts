/** Files that reporters write: probed before the run, and appended to during it. */

import { appendFile } from "node:fs/promises";
import { dirname } from "node:path";
import { makeFolder } from "../../host/folders.ts";
import type { Transport } from "../pipeline/delivery.ts";
import { ReporterError } from "../settings.ts";

/** Name of a file until it is complete. */
export function unfinished(file: string): string {
  return `${file}.${process.pid}.tmp`;
}

/** Begins a document under its temporary name. */
export function prepare(name: string, file: string): Promise<void> {
  if (file === "") throw new ReporterError(`report ${name}: write ${name}=FILE`);
  return writable(name, unfinished(file), file);
}

/** Fails before the run if the file cannot be written. */
export async function writable(name: string, path: string, file = path): Promise<void> {
  try {
    await makeFolder(dirname(path));
    await appendFile(path, "");
  } catch (error) {
    throw new ReporterError(`report ${name}: cannot write ${file}: ${(error as Error).message}`);
  }
}

export function appending(name: string, file: string): Transport {
  if (file === "") throw new ReporterError(`report ${name}: write ${name}=FILE`);
  return {
    send: async ({ body }) => {
      await makeFolder(dirname(file));
      await appendFile(file, body);
      return { kind: "ok" };
    },
    close: async () => {},
  };
}
