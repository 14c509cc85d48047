import { createHash } from "node:crypto";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { BlobStore } from "./blob-store.ts";

const hashOf = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");
const blob = (fill: number, length = 100): readonly [string, Uint8Array] => {
  const bytes = new Uint8Array(length).fill(fill);
  return [hashOf(bytes), bytes];
};

describe("a store of blobs", () => {
  let dir = "";
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), "hyperscale-blobs-"));
  });
  afterEach(() => rm(dir, { recursive: true, force: true }));

  it("drops the least recently used, and says so; pinned ones stay", async () => {
    const gone: string[] = [];
    const store = await BlobStore.open(dir, { bytesMax: 300, onGone: (hash) => gone.push(hash) });
    const [a, b, c, d] = [blob(1), blob(2), blob(3), blob(4)];
    for (const [hash, bytes] of [a, b, c]) expect(await store.keep(hash, bytes)).toBe(null);
    store.pin([a[0]]);
    expect(await store.keep(...d)).toBe(null);
    expect(gone).toEqual([b[0]]);
    expect(store.hashes).toEqual([a[0], c[0], d[0]]);
  });

  it("rejects a blob without room beside those needed", async () => {
    const store = await BlobStore.open(dir, { bytesMax: 150, unusedMsMin: 60_000 });
    const [a, b] = [blob(1), blob(2)];
    expect(await store.keep(...a)).toBe(null);
    expect(await store.keep(...b)).toContain("no room");
    expect(store.hashes).toEqual([a[0]]);
    expect(await readdir(dir)).toEqual([a[0]]);
  });

  it("receives a blob in parts, and keeps it when its hash matches", async () => {
    const store = await BlobStore.open(dir, { bytesMax: 1_000 });
    const [hash, bytes] = blob(7);
    const incoming = await store.begin(hash, bytes.length);
    if (typeof incoming === "string") throw new Error(incoming);
    await incoming.append(bytes.subarray(0, 40));
    expect([incoming.offset, store.has(hash)]).toEqual([40, false]);
    await incoming.append(bytes.subarray(40));
    expect(await incoming.finish()).toBe(null);
    expect(await store.read(hash)).toEqual(Buffer.from(bytes));
    const wrong = await store.begin("0".repeat(64), 1);
    if (typeof wrong === "string") throw new Error(wrong);
    await wrong.append(Uint8Array.of(1));
    expect(await wrong.finish()).toContain("not what its hash says");
    expect(await readdir(dir)).toEqual([hash]);
  });

  it("treats a corrupted blob as missing", async () => {
    const gone: string[] = [];
    const store = await BlobStore.open(dir, { bytesMax: 1_000, onGone: (hash) => gone.push(hash) });
    const [hash, bytes] = blob(7);
    await store.keep(hash, bytes);
    await writeFile(join(dir, hash), "something else");
    expect(await store.read(hash)).toBe(null);
    expect([store.has(hash), gone]).toEqual([false, [hash]]);
  });

  it("serves no part of a corrupted blob, nor reports it as present", async () => {
    const store = await BlobStore.open(dir, { bytesMax: 1_000 });
    const [[a, aBytes], [b, bBytes]] = [blob(1), blob(2)];
    await store.keep(a, aBytes);
    await store.keep(b, bBytes);
    expect(await store.isWhole(a)).toBe(true);
    expect(await store.readPart(b, 0, 10)).toEqual(bBytes.slice(0, 10));
    // The same length: only the content differs.
    for (const hash of [a, b]) await writeFile(join(dir, hash), new Uint8Array(100).fill(9));
    expect(await store.isWhole(a)).toBe(false);
    expect(await store.readPart(b, 0, 10)).toBe(null);
    expect([store.hashes, await readdir(dir)]).toEqual([[], []]);
    expect(await store.keep(a, aBytes)).toBe(null);
  });
});
