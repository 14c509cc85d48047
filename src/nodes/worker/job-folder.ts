/**
 * The files of a job in its own folder, as its code names them. The bundle imports the package by a placeholder for the
 * installed version, which is filled in when the bundle is laid out.
 */

import { randomUUID } from "node:crypto";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, normalize, relative, sep } from "node:path";
import { pathToFileURL } from "node:url";
import type { Order } from "../../core/cluster/messages.ts";
import { OWN_PACKAGE } from "../../engine/own-package.ts";
import type { BlobStore } from "../../host/blob-store.ts";
import type { ExecutorUser } from "../../host/executor-user.ts";
import { makeFolder } from "../../host/folders.ts";
import { letRead, removeFolder } from "../../host/user-files.ts";

type OpenOrder = Extract<Order, { kind: "open" }>;

/** Where files of jobs lie that run as another user, and which file of the data directory names the folder. */
const ELSEWHERE = join(tmpdir(), "hyperscale-jobs-");
const ELSEWHERE_FILE = "jobs.folder";

interface LaidOut {
  /** file:// address of the entry. */
  readonly address: string;
  /** Folder of the entry file; paths in its code are relative to it. */
  readonly folder: string;
}

interface JobFolder {
  readonly folder: string;
  readonly laidOut: Promise<LaidOut>;
}

export class JobFolders {
  readonly #root: string;
  readonly #blobs: BlobStore;
  readonly #laid = new Map<string, JobFolder>();

  readonly #user: ExecutorUser | null;

  private constructor(root: string, blobs: BlobStore, user: ExecutorUser | null) {
    this.#root = root;
    this.#blobs = blobs;
    this.#user = user;
  }

  /**
   * Removes leftovers of a former process. Other users cannot reach anything below the data directory: their files are
   * in a temporary folder, recorded in the data directory.
   */
  static async open(
    dataDir: string,
    blobs: BlobStore,
    user: ExecutorUser | null,
  ): Promise<JobFolders> {
    const own = join(dataDir, "jobs");
    const note = join(dataDir, ELSEWHERE_FILE);
    const former = await readFile(note, "utf8").catch(() => "");
    // Files that another user keeps there must not prevent a start.
    if (former.startsWith(ELSEWHERE)) await removeFolder(former).catch(() => undefined);
    await rm(own, { recursive: true, force: true });
    if (user === null) {
      await makeFolder(own, { mode: 0o700 });
      return new JobFolders(own, blobs, null);
    }
    const root = await mkdtemp(ELSEWHERE);
    await writeFile(note, root, { mode: 0o600 });
    // The user may traverse it to a job whose folder they know, and cannot list the others.
    await chmod(root, 0o711);
    return new JobFolders(root, blobs, user);
  }

  /** Removes what lies outside of the data directory. */
  async close(): Promise<void> {
    if (this.#user !== null) await removeFolder(this.#root);
  }

  /** Runs once per job, however often it is called. */
  layOut(job: string, order: OpenOrder): Promise<LaidOut> {
    const known = this.#laid.get(job);
    if (known !== undefined) return known.laidOut;
    const folder = join(this.#root, `${folderName(job)}-${randomUUID()}`);
    const laidOut = this.#layOut(folder, order);
    this.#laid.set(job, { folder, laidOut });
    return laidOut;
  }

  async remove(job: string): Promise<void> {
    const laid = this.#laid.get(job);
    if (laid === undefined) return;
    this.#laid.delete(job);
    await laid.laidOut.catch(() => undefined);
    if (this.#user === null) await rm(laid.folder, { recursive: true, force: true });
    else await removeFolder(laid.folder);
  }

  async #layOut(folder: string, { entry, files }: OpenOrder): Promise<LaidOut> {
    for (const { hash, path } of files) {
      const target = inside(folder, path);
      await makeFolder(dirname(target), { mode: 0o700 });
      if (path === entry) await this.#writeEntry(hash, target);
      else await this.#blobs.copyTo(hash, target);
    }
    await letRead(folder, this.#user);
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
