/** Blobs on their way between client, manager and worker: one part at a time, so that no order waits long. */

import {
  BLOB_BYTES_MAX,
  BLOB_CHUNK_BYTES_MAX,
  type BlobChunk,
  type BlobGet,
  type BlobHeld,
  type BlobPut,
} from "../../core/cluster/messages.ts";
import { bytes, counter, required, struct, text } from "../schema.ts";

/** Hexadecimal digits of a SHA-256. */
const HASH_BYTES = 64;
export const blobHash = text(HASH_BYTES, HASH_BYTES);
export const blobBytes = counter(BLOB_BYTES_MAX);
const part = bytes(BLOB_CHUNK_BYTES_MAX);

export const blobGet = struct<Omit<BlobGet, "kind">>("BlobGet", {
  hash: required(1, blobHash),
  offset: required(2, blobBytes),
});

export const blobChunk = struct<Omit<BlobChunk, "kind">>("BlobChunk", {
  total: required(1, blobBytes),
  bytes: required(2, part),
});

export const blobPut = struct<Omit<BlobPut, "kind">>("BlobPut", {
  hash: required(1, blobHash),
  offset: required(2, blobBytes),
  total: required(3, blobBytes),
  bytes: required(4, part),
});

export const blobHeld = struct<Omit<BlobHeld, "kind">>("BlobHeld", {
  bytes: required(1, blobBytes),
});
