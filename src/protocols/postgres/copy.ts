/** COPY … FROM STDIN as a custom query of the driver `pg`: the data is sent when the server requests it. */

import type pg from "pg";

interface CopyConnection {
  query(text: string): void;
  sendCopyFromChunk(chunk: Uint8Array): void;
  endCopyFrom(): void;
}

/** Callbacks of the driver for a custom query. */
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

/** Resolves to the number of copied rows. */
export function copyIn(client: pg.Client, text: string, bytes: Uint8Array): Promise<number> {
  return new Promise((resolve, reject) => {
    client.query(new CopyIn(text, bytes, resolve, reject));
  });
}
