/** Small named regions of a node's disk. Writes are durable only after `sync` has succeeded. */

export interface DiskPort {
  /** Reads the region's bytes, or null when it does not exist; `done` gets an error text when reading failed. */
  read(region: string, done: (bytes: Uint8Array | null, error: string | null) => void): void;
  write(region: string, at: number, bytes: Uint8Array, done: (error: string | null) => void): void;
  /** An error here ends the process: the content of the disk is unknown then. */
  sync(region: string, done: (error: string | null) => void): void;
  /** Location of the region, for people. */
  nameOf(region: string): string;
}
