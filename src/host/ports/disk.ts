/** Small named regions of a node's disk. What is written is durable only after `sync` has succeeded. */

export interface DiskPort {
  /** The region's bytes, or null when it does not exist; `done` gets an error text when reading failed. */
  read(region: string, done: (bytes: Uint8Array | null, error: string | null) => void): void;
  write(region: string, at: number, bytes: Uint8Array, done: (error: string | null) => void): void;
  /** An error here ends the process: nobody knows what is on the disk now. */
  sync(region: string, done: (error: string | null) => void): void;
  /** Where the region lives, for people. */
  nameOf(region: string): string;
}
