/**
 * A load test as a task, on this node or on a cluster. Reports metrics while it runs; attaches summary and report to
 * the task.
 *
 * Runs the file sent with the task, or a URL. Files on the node's disk run only from the folder that the operator
 * names.
 */

import { existsSync, mkdirSync, realpathSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, resolve, sep } from "node:path";
import { z } from "zod";
import { errorText } from "../../core/base/error-text.ts";
import { QUEUE_LIMITS } from "../../core/queue/defaults.ts";
import type { ExecutorUser } from "../../host/executor-user.ts";
import { EXIT_UNTRUSTED } from "../../host/exit-codes.ts";
import { letRead } from "../../host/user-files.ts";
import { type ExecutionContext, type Executor, NotRetryable } from "../worker/executor.ts";
import { parseInput } from "./input.ts";
import { runOnCluster } from "./loadtest-cluster.ts";
import { type LoadtestFolder, openFolder } from "./loadtest-folder.ts";
import { checkOutcome, type Loadtest, type LoadtestOutcome, runHere } from "./loadtest-program.ts";
import { bounded, doubtIn, leaveFiles, reasonsOf, summaryIn } from "./loadtest-results.ts";

export interface LoadtestPolicy {
  /** Folder for results of load tests. */
  readonly resultsDirectory: string;
  /** The folder whose workflow files may run; undefined allows none. */
  readonly workflows: string | undefined;
  /** Whether files sent with a task may run: any submitter then runs code here. */
  readonly bundles: boolean;
  /** Arguments of `hyperscale submit` for reaching the cluster; undefined: no cluster. */
  readonly cluster?: readonly string[] | undefined;
  /**
   * User that tests on this node run as. Default: the user of this process. Tests on a cluster are submitted by this
   * process's user, who has the cluster's credentials.
   */
  readonly user?: ExecutorUser | null;
}

const VARIABLES_MAX = 100;
/** Limit of a cluster job. */
const FILES_MAX = 4_096;

const hash = z.string().regex(/^[0-9a-f]{64}$/);
/** Path of a file inside the folder of the task. */
const path = z
  .string()
  .max(1_024)
  .refine(
    (text) => !/[\\:\0]/.test(text) && text.split("/").every((part) => !/^\.{0,2}$/.test(part)),
    "a path inside the folder of the task",
  );

const schema = z
  .strictObject({
    /** A workflow file in the node's folder of workflows, or a URL to load. */
    file: z.string().min(1).max(2_048).optional(),
    /** Instead: a workflow as one module, stored under its SHA-256. */
    bundle: hash.optional(),
    /** Source of the bundle, for people. */
    name: z
      .string()
      .regex(/^[\w.-]{1,100}$/)
      .default("workflow"),
    /** Path of the bundle among its data files. */
    entry: path.optional(),
    /** Data files that the workflow reads. */
    files: z.array(z.strictObject({ path, hash })).max(FILES_MAX).default([]),
    /** Runs on the cluster known to the node, instead of on the node. */
    cluster: z.boolean().default(false),
    /** Further arguments of `hyperscale run`, e.g. ["--vus", "50"]. */
    args: z
      .array(z.string().max(64 * 1024))
      .max(100)
      .default([]),
    /**
     * Environment variables for the code of the file. They are set after its processes have started, so that a task
     * cannot change which code a node runs.
     */
    env: z
      .record(
        z
          .string()
          .regex(/^[^=\s]+$/)
          .max(256),
        z.string().max(64 * 1024),
      )
      .refine((env) => Object.keys(env).length <= VARIABLES_MAX, `at most ${VARIABLES_MAX}`)
      .default({}),
    /** Effect of a failed threshold on the task. */
    on_failed_threshold: z.enum(["fail", "succeed"]).default("fail"),
  })
  .refine(
    ({ file, bundle }) => (file === undefined) !== (bundle === undefined),
    "give file or bundle",
  )
  .refine(
    ({ bundle, entry, files }) =>
      bundle !== undefined || (entry === undefined && files.length === 0),
    "entry and files belong to a bundle",
  );
type LoadtestInput = z.output<typeof schema>;

/** Options of load and thresholds, each with its number of values; the task does not choose where results go. */
const ARGUMENTS: Readonly<Record<string, 0 | 1>> = {
  "--vus": 1,
  "--duration": 1,
  "--rate": 1,
  "--max-vus": 1,
  "--max-rate": 1,
  "--iterations": 1,
  "--warmup": 1,
  "--graceful-stop": 1,
  "--call-timeout": 1,
  "--timeout": 1,
  "--abort-on-fail": 0,
  "--insecure": 0,
  "--traceparent": 0,
  "--cores": 1,
  "--method": 1,
  "--header": 1,
  "--body": 1,
  "--threshold": 1,
  "--only": 1,
  "--seed": 1,
  "--csv": 0,
  "--require-trusted": 0,
  "--no-require-trusted": 0,
};

/** Further options of a cluster job: its tenant, and the datacenters it runs in. */
const CLUSTER_ARGUMENTS: Readonly<Record<string, 0 | 1>> = {
  "--tenant": 1,
  "--datacenters": 1,
  "--datacenter-count": 1,
  "--split": 1,
  "--each-datacenter": 0,
  "--prefer": 1,
  "--strict": 0,
};

export function loadtestExecutor(policy: LoadtestPolicy): Executor {
  return async (value, context) => {
    const input = parseInput(schema, value);
    const { cluster, on_failed_threshold: onFailedThreshold } = input;
    checkArguments(input.args, cluster);
    if (cluster && policy.cluster === undefined)
      throw new NotRetryable("this node knows no cluster: start it with --gate or --manager");
    const name = `task-${context.taskId}-attempt-${context.attempt}`;
    const user = cluster ? null : (policy.user ?? null);
    const folder = openFolder(join(policy.resultsDirectory, name), user);
    try {
      const { out } = folder;
      const target = await targetOf(input, policy, { context, folder });
      const variables = Object.entries(input.env).map(([key, one]) => `--env=${key}=${one}`);
      const test = { ...target, out, user, args: [...input.args, ...variables] };
      const outcome =
        policy.cluster === undefined || !cluster
          ? await runHere(test, context)
          : await runOnCluster(test, policy.cluster, context);
      context.signal.throwIfAborted();
      // Also for a test without a verdict: they are more useful than its last output.
      const summary = summaryIn(folder);
      const files = await leaveFiles(folder, context);
      return judge(outcome, { summary, files, onFailedThreshold });
    } finally {
      await folder.close().catch((error: unknown) => {
        context.log(`files of the load test were left on the node: ${errorText(error)}`);
      });
    }
  };
}

interface Left {
  readonly summary: ReturnType<typeof summaryIn>;
  readonly files: Awaited<ReturnType<typeof leaveFiles>>;
  readonly onFailedThreshold: LoadtestInput["on_failed_threshold"];
}

/** Returns the result of the task; throws when the test failed. */
function judge(outcome: LoadtestOutcome, { summary, files, onFailedThreshold }: Left): object {
  const passed = checkOutcome(outcome);
  if (summary === null) throw new NotRetryable("the load test ended without a summary");
  if (!passed && onFailedThreshold === "fail")
    throw new NotRetryable(`the load test failed: ${reasonsOf(summary)}`);
  const isUntrusted = outcome.code === EXIT_UNTRUSTED || (passed && doubtIn(summary) !== null);
  const verdict = isUntrusted ? "untrusted" : passed ? "passed" : "failed";
  return { verdict, exit_code: outcome.code, ...files, ...bounded(summary) };
}

/** A bundle is named as in its folder: the same in every attempt, on every node, and in reports. */
type Target = Pick<Loadtest, "target" | "cwd" | "title">;

interface BundlePlace {
  readonly context: ExecutionContext;
  readonly folder: LoadtestFolder;
}

async function targetOf(
  { file, bundle, entry, files, name }: LoadtestInput,
  { bundles, workflows }: LoadtestPolicy,
  { context, folder }: BundlePlace,
): Promise<Target> {
  if (bundle === undefined)
    return { target: namedTarget(file ?? "", workflows), cwd: undefined, title: undefined };
  if (!bundles) {
    const cure = "it has no token, or was started with --no-bundles";
    throw new NotRetryable(`this node runs no files that come with tasks: ${cure}`);
  }
  const target = entry ?? `${name.replace(/\.[cm]?[jt]sx?$/, "")}.mjs`;
  let bytes = 0;
  for (const one of [{ path: target, hash: bundle }, ...files]) {
    const content = await context.file(one.hash);
    bytes += content.length;
    if (bytes > QUEUE_LIMITS.fileBytesMax)
      throw new NotRetryable(`the files of a task have ${QUEUE_LIMITS.fileBytesMax} bytes at most`);
    const place = join(folder.bundle, one.path);
    mkdirSync(dirname(place), { recursive: true, mode: 0o700 });
    writeFileSync(place, content, { mode: 0o600 });
  }
  await letRead(folder.bundle, folder.user);
  return { target, cwd: folder.bundle, title: name };
}

function namedTarget(file: string, workflows: string | undefined): string {
  if (/^https?:\/\//i.test(file)) {
    if (URL.canParse(file)) return file;
    throw new NotRetryable(`"${file.slice(0, 200)}" is not a URL`);
  }
  if (workflows === undefined) {
    const cure = "send the file with the task, or start the node with --workflows DIR";
    throw new NotRetryable(`this node runs no workflow files: ${cure}`);
  }
  const folder = realpathSync(workflows);
  const path = resolve(folder, file);
  // Compares resolved paths, so that links cannot lead outside.
  const real = existsSync(path) ? realpathSync(path) : path;
  if (!real.startsWith(folder + sep) || !existsSync(real) || !statSync(real).isFile()) {
    throw new NotRetryable(`"${file.slice(0, 200)}" is not a file of this node's workflow folder`);
  }
  return real;
}

function checkArguments(args: readonly string[], cluster: boolean): void {
  const allowed = cluster ? { ...ARGUMENTS, ...CLUSTER_ARGUMENTS } : ARGUMENTS;
  for (let at = 0; at < args.length; ) {
    const [name = "", value] = splitFlag(args[at] ?? "");
    const values = Object.hasOwn(allowed, name) ? allowed[name] : undefined;
    if (values === undefined) {
      const known = Object.keys(allowed).join(" ");
      throw new NotRetryable(`input.args: "${name.slice(0, 100)}" is not taken here; use ${known}`);
    }
    const separate = values === 1 && value === undefined;
    if (separate && at + 1 >= args.length)
      throw new NotRetryable(`input.args: ${name} needs a value`);
    at += separate ? 2 : 1;
  }
}

function splitFlag(text: string): readonly [string, string | undefined] {
  const at = text.indexOf("=");
  return at < 0 || !text.startsWith("--")
    ? [text, undefined]
    : [text.slice(0, at), text.slice(at + 1)];
}
