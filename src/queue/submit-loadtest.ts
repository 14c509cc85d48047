/**
 * A load test as a task: bundles the workflow file with its imports, stores it under its hash with the data files that
 * it reads, and names them in the task. Nothing is read from the disk of the node that runs it.
 */

import { basename } from "node:path";
import { QUEUE_LIMITS } from "../core/queue/defaults.ts";
import { QueueError } from "../core/queue/errors.ts";
import type { QueueClient } from "./api/client.ts";
import type { SubmitRequest } from "./api/submit-request.ts";
import type { Task } from "./api/types.ts";

export interface LoadtestOptions extends Omit<SubmitRequest, "executor" | "input"> {
  /** Options of load and thresholds, as of `hyperscale run`. */
  readonly args?: readonly string[];
  /** Environment variables for the file. */
  readonly env?: Readonly<Record<string, string>>;
  /** Runs on the cluster known to the node. */
  readonly cluster?: boolean;
  readonly onFailedThreshold?: "fail" | "succeed";
  /** Receives warnings about files that are not sent, and output of the file's code while it is loaded here. */
  readonly onWarning?: (line: string) => void;
}

const ignore = (): void => undefined;

/** `target` is a workflow file of this machine, or a URL. */
export async function submitLoadtest(
  client: QueueClient,
  target: string,
  options: LoadtestOptions = {},
): Promise<Task> {
  return client.submit(await loadtestRequest(client, target, options));
}

/** The same as a request, for schedules and batches; its files are already stored. */
export async function loadtestRequest(
  client: QueueClient,
  target: string,
  { args, env, cluster, onFailedThreshold, onWarning = ignore, ...rest }: LoadtestOptions = {},
): Promise<SubmitRequest> {
  const what = /^https?:\/\//i.test(target)
    ? { file: target }
    : await storeWorkflow(client, target, env ?? {}, onWarning);
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

async function storeWorkflow(
  client: QueueClient,
  target: string,
  env: Readonly<Record<string, string>>,
  onWarning: (line: string) => void,
): Promise<object> {
  // Loaded on first use: most programs that submit make no bundles.
  const { workflowFiles } = await import("../runner/workflow-files.ts");
  const { contents, entry, files } = await workflowFiles(target, env, onWarning);
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  if (bytes > QUEUE_LIMITS.fileBytesMax) {
    const problem = `${target} and its data files have ${bytes} bytes together`;
    throw new QueueError("TOO_LARGE", `${problem}: the limit is ${QUEUE_LIMITS.fileBytesMax}`);
  }
  for (const content of contents.values())
    await client.store(typeof content === "function" ? await content() : content);
  const [module, ...data] = files.map(({ path, hash }) => ({ path, hash }));
  const name = basename(target);
  if (data.length === 0) return { bundle: module?.hash, name };
  return { bundle: module?.hash, name, entry, files: data };
}
