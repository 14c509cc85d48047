import { createHash } from "node:crypto";
import {
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { isRoot, needs } from "../../../test/needs.ts";
import { BlobStore } from "../../host/blob-store.ts";
import { JobFolders } from "./job-folder.ts";

const user = { name: "65534", uid: 65_534, gid: 65_534 };
const CODE = Buffer.from("export default 1;");
const HASH = createHash("sha256").update(CODE).digest("hex");

describe("folders of jobs that run as another user", needs(isRoot, "not root"), () => {
  let dataDir: string;
  let blobs: BlobStore;

  beforeEach(async () => {
    dataDir = mkdtempSync(join(tmpdir(), "hyperscale-job-folder-"));
    blobs = await BlobStore.open(join(dataDir, "blobs"), { bytesMax: 1_000_000 });
    expect(await blobs.keep(HASH, CODE)).toBeNull();
  });
  afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

  const order = {
    entry: "w.mjs",
    files: ["w.mjs", "data/a.csv"].map((path) => ({ path, hash: HASH })),
  } as unknown as Parameters<JobFolders["layOut"]>[1];

  it("belong to root with everything in them, and have names that cannot be guessed", async () => {
    const folders = await JobFolders.open(dataDir, blobs, user);
    const { folder } = await folders.layOut("job-1", order);
    const paths = ["", ...readdirSync(folder, { recursive: true }).map(String)];
    expect(paths).toHaveLength(4);
    for (const path of paths)
      expect(lstatSync(join(folder, path))).toMatchObject({ uid: 0, gid: user.gid });
    expect(basename(folder)).toMatch(/^job-1-[\da-f-]{36}$/);
    expect((await folders.layOut("job-1", order)).folder).toBe(folder);
    await folders.remove("job-1");
    expect(readdirSync(dirname(folder))).toEqual([]);
    await folders.close();
    expect(existsSync(dirname(folder))).toBe(false);
  });

  it("of a former process are removed with the rights of their owner only", async () => {
    const former = await JobFolders.open(dataDir, blobs, user);
    const root = readFileSync(join(dataDir, "jobs.folder"), "utf8");
    const given = join(root, "job-2");
    mkdirSync(join(given, "own"), { recursive: true });
    writeFileSync(join(given, "own", "kept"), "root's");
    chownSync(given, user.uid, user.gid);
    const next = await JobFolders.open(dataDir, blobs, null);
    expect(readFileSync(join(given, "own", "kept"), "utf8")).toBe("root's");
    rmSync(join(given, "own"), { recursive: true });
    await Promise.all([former.close(), next.close()]);
    expect(existsSync(root)).toBe(false);
  });
});
