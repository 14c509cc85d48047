/** COPY … FROM STDIN as the driver `pg` performs what brings its own rules: the data go out when they are asked for. */

import type pg from "pg";

interface CopyConnection {
  query(text: string): void;
  sendCopyFromChunk(chunk: Uint8Array): void;
  endCopyFrom(): void;
}

/** What a driver tells whoever it performs. */
class CopyIn {
  readonly #text: string;
  readonly #bytes: Uint8Array;
  readonly #done: (rowCount: number) => void;
  readonly #failed: (error: unknown) => void;
  #rowCount = 0;

  constructor(
    text: string,
    bytes: Uint8Array,
    done: (rowCount: number) => void,
    failed: (error: unknown) => void,
  ) {
    this.#text = text;
    this.#bytes = bytes;
    this.#done = done;
    this.#failed = failed;
  }

  submit(connection: unknown): void {
    (connection as CopyConnection).query(this.#text);
  }

  handleCopyInResponse(connection: CopyConnection): void {
    connection.sendCopyFromChunk(this.#bytes);
    connection.endCopyFrom();
  }

  /** "COPY 3". */
  handleCommandComplete({ text }: { readonly text: string }): void {
    this.#rowCount = Number(/^COPY (\d+)/.exec(text)?.[1] ?? 0);
  }

  handleReadyForQuery(): void {
    this.#done(this.#rowCount);
  }

  handleError(error: unknown): void {
    this.#failed(error);
  }
}

/** How many rows were taken in. */
export function copyIn(client: pg.Client, text: string, bytes: Uint8Array): Promise<number> {
  return new Promise((resolve, reject) => {
    client.query(new CopyIn(text, bytes, resolve, reject));
  });
}
