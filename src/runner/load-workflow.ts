/** Manifest of a bundled workflow, as loaded by one local executor core: nothing is run. */

import type { LoadOverrides } from "../core/load/job/load-overrides.ts";
import type { WorkflowManifest } from "../core/load/job/manifest.ts";
import { CoreProcess } from "../engine/core-process.ts";
import { LOAD_TIMEOUT_MS, loadedTooLate, placedIn } from "./check-manifests.ts";
import { RunError } from "./errors.ts";

interface Loading {
  /** As the user named it. */
  readonly name: string;
  readonly overrides: LoadOverrides;
  readonly warn: (line: string) => void;
}

export interface LoadedWorkflow {
  readonly manifests: readonly WorkflowManifest[];
  readonly reports: readonly string[];
  /** Paths of its data files, as it names them. */
  readonly paths: readonly string[];
}

export async function loadWorkflow(
  bundle: string,
  folder: string,
  { name, overrides, warn }: Loading,
): Promise<LoadedWorkflow> {
  let reports: readonly string[] = [];
  let paths: readonly string[] = [];
  let core: CoreProcess | undefined;
  let timer: NodeJS.Timeout | undefined;
  try {
    return await new Promise((resolve, reject) => {
      timer = setTimeout(() => reject(loadedTooLate()), LOAD_TIMEOUT_MS);
      core = new CoreProcess({
        number: 0,
        inspect: false,
        onEvent: (event) => {
          if (event.kind === "log" || event.kind === "unhandled") warn(event.line);
          if (event.kind === "declared") ({ reports, files: paths } = event);
          if (event.kind === "loaded") resolve({ manifests: event.manifests, paths, reports });
          if (event.kind === "loadFailed") reject(new RunError(placedIn(name, event.problem), 2));
        },
        onLost: (what) => reject(new RunError(what, 1)),
      });
      core.send({ kind: "load", bundle, folder, overrides, core: 0 });
    });
  } finally {
    clearTimeout(timer);
    await core?.end();
  }
}
