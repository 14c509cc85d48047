/**
 * A job for a cluster, made from a file or URL as `run` accepts it: one module with everything inside, and the
 * manifests of its workflows, reported by one local executor core. So mistakes are found before anything is sent, with
 * the same messages as by `run`.
 */

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, extname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { maskCredentials } from "../core/base/mask-credentials.ts";
import { clipText } from "../core/base/text.ts";
import type { Submission } from "../core/cluster/messages.ts";
import type { LoadOverrides } from "../core/load/job/load-overrides.ts";
import { OWN_PACKAGE } from "../engine/own-package.ts";
import { ownIndex, portableBundle } from "./bundle.ts";
import { checkManifests } from "./check-manifests.ts";
import { type JobFiles, type JobModule, jobFiles } from "./job-files.ts";
import { type LoadedWorkflow, loadWorkflow } from "./load-workflow.ts";
import {
  abortAfterMs,
  checkFileOptions,
  checkThresholds,
  isUrl,
  overridesOf,
  type RunOptions,
  runTimeoutMs,
} from "./run-options.ts";
import { urlModule, urlRequest } from "./url-workflow.ts";
import { packageVersion } from "./version.ts";
import { writtenTexts } from "./written-texts.ts";

/** Characters of the command line, for people: longer ones are clipped, such as one with a typed body. */
const COMMAND_CHARACTERS_MAX = 4_096;

interface PreparedJob {
  readonly submission: Submission;
  /** Reporters requested by the file: for the client, and no part of the submission. (REP-7) */
  readonly reports: readonly string[];
  /** By their hash. */
  readonly files: JobFiles;
}

export async function prepareJob(
  target: string,
  options: RunOptions,
  warn: (line: string) => void,
): Promise<PreparedJob> {
  const overrides = overridesOf(options);
  const { cores, tags = {}, thresholds = [], title } = options;
  checkThresholds(thresholds);
  const module = await moduleOf(target, options, overrides);
  const { manifests, paths, reports } = await manifestsOf(module, {
    name: maskCredentials(target),
    ...{ overrides, thresholds, warn },
  });
  const { contents, entry, files } = await jobFiles(module, paths, warn);
  return {
    reports,
    files: contents,
    submission: {
      name: maskCredentials(target),
      title: title ?? null,
      ...{
        tags,
        manifests,
        entry,
        files,
        overrides,
        thresholds,
      },
      // Settings of the user are among the overrides.
      abortAfterMs: abortAfterMs(options),
      timeoutMs: runTimeoutMs(options),
      cores: cores ?? null,
      held: false,
      command: clipText(commandOf(target, options), COMMAND_CHARACTERS_MAX),
      version: packageVersion(),
    },
  };
}

function commandOf(target: string, { command }: RunOptions): string {
  return command ?? `submit(${JSON.stringify(maskCredentials(target))})`;
}

async function moduleOf(
  target: string,
  options: RunOptions,
  overrides: LoadOverrides,
): Promise<JobModule> {
  if (isUrl(target)) {
    const text = urlModule(urlRequest(target, options), overrides, OWN_PACKAGE);
    return { name: "url.mjs", bytes: Buffer.from(text), folder: process.cwd() };
  }
  checkFileOptions(options);
  const path = resolve(target);
  const name = `${basename(path, extname(path))}.mjs`;
  return { name, bytes: await portableBundle(target), folder: dirname(path) };
}

interface Loading {
  readonly name: string;
  readonly overrides: LoadOverrides;
  readonly thresholds: readonly string[];
  readonly warn: (line: string) => void;
}

/** Loaded as a worker will load it. */
async function manifestsOf(
  { bytes, folder, name }: JobModule,
  loading: Loading,
): Promise<LoadedWorkflow> {
  const place = await mkdtemp(join(tmpdir(), "hyperscale-submit-"));
  try {
    const file = join(place, name);
    await writeFile(file, Buffer.from(bytes).toString("utf8").replaceAll(OWN_PACKAGE, ownIndex()));
    const address = pathToFileURL(file).href;
    const loaded = await loadWorkflow(address, folder, loading);
    const { thresholds, warn } = loading;
    const { manifests } = loaded;
    checkManifests({ manifests, thresholds, texts: await writtenTexts(address), warn });
    return loaded;
  } finally {
    await rm(place, { recursive: true, force: true });
  }
}
