/**
 * The files of a job in a folder of its own, as its code names them. The bundle imports the package by a name
 * that stands for "whichever version runs here"; it is put in when the bundle is laid out.
 */

import { chmod, rm, writeFile } from "node:fs/promises";
import { dirname, join, normalize, relative, sep } from "node:path";
import { pathToFileURL } from "node:url";
import type { Order } from "../../core/tiers/messages.ts";
import { OWN_PACKAGE } from "../../engine/own-package.ts";
import type { BlobStore } from "../../host/blob-store.ts";
import { makeFolder } from "../../host/folders.ts";

type OpenOrder = Extract<Order, { kind: "open" }>;

interface LaidOut {
  /** file:// address of the entry. */
  readonly address: string;
  /** Of the entry: where paths in its code begin. */
  readonly folder: string;
}

export class JobFolders {
  readonly #root: string;
  readonly #blobs: BlobStore;
  readonly #laid = new Map<string, Promise<LaidOut>>();

  private constructor(root: string, blobs: BlobStore) {
    this.#root = root;
    this.#blobs = blobs;
  }

  /** What a former process left is removed. */
  static async open(root: string, blobs: BlobStore): Promise<JobFolders> {
    await rm(root, { recursive: true, force: true });
    await makeFolder(root, { mode: 0o700 });
    return new JobFolders(root, blobs);
  }

  /** Once per job, however often it is asked. */
  layOut(job: string, order: OpenOrder): Promise<LaidOut> {
    const known = this.#laid.get(job);
    if (known !== undefined) return known;
    const made = this.#layOut(join(this.#root, folderName(job)), order);
    this.#laid.set(job, made);
    return made;
  }

  async remove(job: string): Promise<void> {
    const laid = this.#laid.get(job);
    this.#laid.delete(job);
    await laid?.catch(() => undefined);
    await rm(join(this.#root, folderName(job)), { recursive: true, force: true });
  }

  async #layOut(folder: string, { entry, files }: OpenOrder): Promise<LaidOut> {
    for (const { hash, path } of files) {
      const target = inside(folder, path);
      await makeFolder(dirname(target), { mode: 0o700 });
      if (path === entry) await this.#writeEntry(hash, target);
      else await this.#blobs.copyTo(hash, target);
    }
    const file = inside(folder, entry);
    return { address: pathToFileURL(file).href, folder: dirname(file) };
  }

  async #writeEntry(hash: string, target: string): Promise<void> {
    const bytes = await this.#blobs.read(hash);
    if (bytes === null) throw new Error("the bundle is not here any more");
    const own = new URL("../../index.js", import.meta.url).href;
    const text = Buffer.from(bytes).toString("utf8");
    await writeFile(target, text.replaceAll(OWN_PACKAGE, own), { mode: 0o600 });
    await chmod(target, 0o400);
  }
}

/** Throws when the path leaves the folder. */
function inside(folder: string, path: string): string {
  const target = normalize(join(folder, path));
  const way = relative(folder, target);
  if (way === "" || way === ".." || way.startsWith(`..${sep}`))
    throw new Error(`${path} is no file below the folder of its job`);
  return target;
}

function folderName(job: string): string {
  return job.replace(/[^A-Za-z0-9._-]/g, "_");
}
