/** Files of tasks at a remote node. */

import type { Attachment, FilePort, LeaseRef, StoredFile } from "./types.ts";

interface Calls {
  call(method: string, params: unknown): Promise<unknown>;
}

export class RemoteFiles implements FilePort {
  readonly #rpc: Calls;

  constructor(rpc: Calls) {
    this.#rpc = rpc;
  }

  async useFile(hash: string): Promise<StoredFile | null> {
    const answer = await this.#rpc.call("use_file", { hash });
    return (answer as { readonly file: StoredFile | null }).file;
  }

  async putChunk(hash: string, chunk: number, data: string): Promise<void> {
    await this.#rpc.call("put_file_chunk", { hash, chunk, data });
  }

  async putFile(hash: string, chunks: number): Promise<void> {
    await this.#rpc.call("put_file", { hash, chunks });
  }

  async getChunk(hash: string, chunk: number): Promise<string> {
    const answer = await this.#rpc.call("get_file_chunk", { hash, chunk });
    return (answer as { readonly data: string }).data;
  }

  async attach({ task_id, lease_token }: LeaseRef, file: Attachment): Promise<void> {
    await this.#rpc.call("attach_file", { task_id, lease_token, ...file });
  }
}
