import { createHash } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { BlobStore } from "../../host/blob-store.ts";
import { Uploads } from "./uploads.ts";

const BYTES = new Uint8Array(1_000).fill(3);
const HASH = createHash("sha256").update(BYTES).digest("hex");

describe("a blob on its way to a manager", () => {
  let dir = "";
  let store: BlobStore;
  let uploads: Uploads;
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), "hyperscale-uploads-"));
    store = await BlobStore.open(dir, { bytesMax: 10_000 });
    uploads = new Uploads(store);
  });
  afterEach(() => rm(dir, { recursive: true, force: true }));

  const put = (from: number, to: number, total = BYTES.length) =>
    uploads.put({ hash: HASH, offset: from, total, bytes: BYTES.subarray(from, to) });

  it("is complete with its last part, and reports where to continue until then", async () => {
    expect(await put(0, 400)).toEqual({ held: 400, problem: null, complete: false });
    expect(await put(0, 400)).toEqual({ held: 400, problem: null, complete: false });
    expect(await put(800, 1_000)).toEqual({ held: 400, problem: null, complete: false });
    expect(await put(400, 1_000)).toEqual({ held: 1_000, problem: null, complete: true });
    expect(await put(0, 400)).toEqual({ held: 1_000, problem: null, complete: false });
    expect(await store.read(HASH)).toEqual(Buffer.from(BYTES));
  });

  it("may be sent by several at once", async () => {
    const answers = await Promise.all([put(0, 500), put(0, 500), put(500, 1_000), put(500, 1_000)]);
    expect(answers.map(({ held }) => held)).toEqual([500, 500, 1_000, 1_000]);
    expect(answers.filter(({ complete }) => complete)).toHaveLength(1);
  });

  it("is rejected when it is too large or there is no space", async () => {
    expect((await put(0, 10, 2 ** 40)).problem).toContain("too large");
    expect((await put(0, 10, 20_000)).problem).toContain("no room");
  });
});
