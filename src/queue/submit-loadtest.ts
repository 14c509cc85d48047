/**
 * A load test as a task: the workflow file becomes one module with everything inside, is stored under its
 * hash, and the task names it. Nothing is read from the disk of the node that runs it.
 */

import { basename } from "node:path";
import type { QueueClient } from "./api/client.ts";
import type { SubmitRequest } from "./api/submit-request.ts";
import type { Task } from "./api/types.ts";

export interface LoadtestOptions extends Omit<SubmitRequest, "executor" | "input"> {
  /** Options of load and judgement, as of `hyperscale run`. */
  readonly args?: readonly string[];
  /** Variables that the file finds in `process.env`. */
  readonly env?: Readonly<Record<string, string>>;
  /** On the cluster that the node knows. */
  readonly cluster?: boolean;
  readonly onFailedThreshold?: "fail" | "succeed";
}

/** `target` is a workflow file of this machine, or a URL. */
export async function submitLoadtest(
  client: QueueClient,
  target: string,
  options: LoadtestOptions = {},
): Promise<Task> {
  return client.submit(await loadtestRequest(client, target, options));
}

/** The same as a request, for schedules and batches; the file is stored already. */
export async function loadtestRequest(
  client: QueueClient,
  target: string,
  { args, env, cluster, onFailedThreshold, ...rest }: LoadtestOptions = {},
): Promise<SubmitRequest> {
  const what = /^https?:\/\//i.test(target)
    ? { file: target }
    : { bundle: await client.store(await sourceOf(target)), name: basename(target) };
  const onCluster = { placement_constraints: { requires_capabilities: { cluster: true } } };
  return {
    executor: "loadtest",
    input: {
      ...what,
      ...(args === undefined ? {} : { args }),
      ...(env === undefined ? {} : { env }),
      ...(cluster === true ? { cluster } : {}),
      ...(onFailedThreshold === undefined ? {} : { on_failed_threshold: onFailedThreshold }),
    },
    ...(cluster === true ? onCluster : {}),
    ...rest,
  };
}

async function sourceOf(file: string): Promise<Uint8Array> {
  // Loaded only here: most programs that submit make no bundles.
  const { workflowSource } = await import("../runner/bundle.ts");
  return workflowSource(file);
}
