/** Blobs of a manager or gate: executes its machine's effects on disk and feeds the results back. */

import { assertNever } from "../../core/base/assert.ts";
import { BLOB_CHUNK_BYTES_MAX } from "../../core/cluster/messages.ts";
import type { AboveEffect, AboveInput } from "../../core/cluster/node/above.ts";
import type { Background } from "../../host/background.ts";
import type { BlobStore } from "../../host/blob-store.ts";
import type { Log } from "../../host/ports/log.ts";
import type { Uploads } from "./uploads.ts";

interface BlobPorts {
  readonly blobs: BlobStore;
  readonly uploads: Uploads;
  readonly background: Background;
  readonly log: Log;
  readonly tell: (input: AboveInput) => void;
}

export function runBlobs(effect: AboveEffect, ports: BlobPorts): void {
  const { background, blobs, log, tell, uploads } = ports;
  switch (effect.kind) {
    case "keepBlob":
      background.run("keep a blob", async () => {
        const { bytes, hash } = effect;
        const problem = await blobs.keep(hash, bytes);
        if (problem === null) tell({ kind: "blobsHeld", hashes: [hash] });
        else {
          log.event("error", "blob.notKept", { hash, problem });
          tell({ kind: "blobNotKept", hash, problem });
        }
      });
      return;
    case "pinBlobs":
      blobs.pin(effect.hashes);
      return;
    case "readBlob":
      background.run("read a blob", async () => {
        const { hash } = effect;
        tell({ kind: "blobRead", hash, bytes: await blobs.read(hash) });
      });
      return;
    case "blobGet":
      background.run("send a part of a blob", async () => {
        const { hash, id, offset } = effect;
        const bytes = await blobs.readPart(hash, offset, BLOB_CHUNK_BYTES_MAX);
        tell({ kind: "blobPart", id, total: blobs.bytesOf(hash) ?? 0, bytes });
      });
      return;
    case "blobPut":
      background.run("take a part of a blob", async () => {
        const { complete, held, problem } = await uploads.put(effect);
        if (complete) tell({ kind: "blobsHeld", hashes: [effect.hash] });
        tell({ kind: "blobPutDone", id: effect.id, held, problem });
      });
      return;
    default:
      assertNever(effect);
  }
}
