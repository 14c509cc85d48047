/** URL mode: the workflow for a single address and a few flags, as a module like any other. */

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { LoadOverrides } from "../core/load/job/load-overrides.ts";
import type { Bundle } from "./bundle.ts";
import { RunError } from "./errors.ts";
import type { RunOptions } from "./run-options.ts";
import { parseTargetUrl } from "./target-url.ts";

interface UrlRequest {
  readonly url: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
}

/** Methods for a single address. */
export const URL_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
const URL_MODE_VUS = 64;
const URL_MODE_DURATION_MS = 10_000;

/** Builds the request from the options; throws when the URL is unsupported. */
export function urlRequest(target: string, { body, headers, method }: RunOptions): UrlRequest {
  const parsed = parseTargetUrl(target);
  if (!parsed.ok) throw new RunError(parsed.problem, 2);
  if (method !== undefined && !URL_METHODS.includes(method))
    throw new RunError(`method is "${method}"; it must be one of ${URL_METHODS.join(", ")}`, 2);
  const { href: url } = parsed.url;
  return { url, method: method ?? "GET", headers: headers ?? {}, body: body ?? null };
}

/** Text of the module; `index`: address of this package. */
export function urlModule(request: UrlRequest, overrides: LoadOverrides, index: string): string {
  const { body, headers, method, url } = request;
  const options = { headers, ...(body === null ? {} : { body }) };
  const load =
    overrides.rate === undefined
      ? { vus: URL_MODE_VUS, duration: URL_MODE_DURATION_MS }
      : { rate: overrides.rate, duration: URL_MODE_DURATION_MS };
  const { host, pathname } = new URL(url);
  return (
    `import { http, workflow } from ${JSON.stringify(index)};\n` +
    `export default workflow(${JSON.stringify(host)}, ${JSON.stringify(load)})\n` +
    `  .step(${JSON.stringify(`${method} ${pathname}`)}, ` +
    `http.${method.toLowerCase()}(${JSON.stringify(url)}, ${JSON.stringify(options)}));\n`
  );
}

export async function urlWorkflow(request: UrlRequest, overrides: LoadOverrides): Promise<Bundle> {
  const index = new URL("../index.js", import.meta.url).href;
  const source = urlModule(request, overrides, index);
  const folder = await mkdtemp(join(tmpdir(), "hyperscale-url-"));
  const file = join(folder, "url.mjs");
  await writeFile(file, source);
  return {
    address: pathToFileURL(file).href,
    folder: process.cwd(),
    sha256: "",
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}
