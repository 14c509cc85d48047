/** Compression as a port: the pure layer decides what to compress and how large a result may be. */

export interface Compressor {
  deflate(bytes: Uint8Array): Uint8Array;
  /** Returns the inflated bytes, or null when they are damaged or would exceed `lengthMax`; never allocates more. */
  inflate(bytes: Uint8Array, lengthMax: number): Uint8Array | null;
}
