/** `run --trace`: one iteration of each flow of a file in one executor core, instead of a run. */

import type { CoreEvent } from "../core/load/job/core-messages.ts";
import type { LoadOverrides } from "../core/load/job/load-overrides.ts";
import { CoreProcess } from "../engine/core-process.ts";
import type { Bundle } from "./bundle.ts";
import { placed } from "./check-manifests.ts";
import { RunError } from "./errors.ts";

interface TraceOptions {
  readonly bundle: Bundle;
  readonly overrides: LoadOverrides;
  readonly inspect: boolean;
  readonly say: (line: string) => void;
}

/** Returns true when every iteration completed and every check held. */
export async function traceRun({
  bundle,
  inspect,
  overrides,
  say,
}: TraceOptions): Promise<boolean> {
  let onEvent: (event: CoreEvent) => void = () => undefined;
  let lost: (error: RunError) => void = () => undefined;
  const core = new CoreProcess({
    number: 0,
    inspect,
    onEvent: (event) => {
      if (event.kind === "log" || event.kind === "unhandled") say(event.line);
      else if (event.kind !== "declared") onEvent(event);
    },
    onLost: (what) => lost(new RunError(what, 1)),
  });
  const next = (): Promise<CoreEvent> =>
    new Promise((resolve, reject) => {
      onEvent = resolve;
      lost = reject;
    });
  try {
    const { address, folder } = bundle;
    const loading = next();
    core.send({ kind: "load", bundle: address, folder, overrides, core: 0 });
    const loaded = await loading;
    if (loaded.kind === "loadFailed") throw new RunError(placed(loaded.problem), 2);
    if (loaded.kind !== "loaded") throw new RunError("the executor core did not load the file", 1);
    // The flows of a mix one after the other.
    const names = loaded.manifests.flatMap(({ name, parts }) =>
      parts.length > 0 ? parts.map((part) => part.name) : [name],
    );
    let completed = true;
    for (const workflow of names) {
      const tracing = next();
      core.send({ kind: "trace", workflow });
      const traced = await tracing;
      if (traced.kind !== "traced") continue;
      if (traced.problem !== null) throw new RunError(placed(traced.problem), 1);
      completed &&= traced.completed;
    }
    return completed;
  } finally {
    await core.end();
  }
}
