/** Links of a process on real streams: executes their effects and reports events. */

import { assertNever } from "../core/base/assert.ts";
import type { LinkEffect, LinkInput, StreamId } from "../core/cluster/link/types.ts";
import type { ByteStream, ByteStreamPort } from "./ports/byte-stream.ts";

export class StreamDriver {
  readonly #port: ByteStreamPort;
  readonly #push: (input: LinkInput) => void;
  readonly #streams = new Map<StreamId, ByteStream>();
  #accepted = -1;

  constructor(port: ByteStreamPort, push: (input: LinkInput) => void) {
    this.#port = port;
    this.#push = push;
    port.onAccept((stream) => {
      this.#accepted += 2;
      this.#open(this.#accepted as StreamId, stream);
    });
  }

  run(effect: LinkEffect): void {
    const { stream } = effect;
    switch (effect.kind) {
      case "dial":
        this.#port.dial(effect.to, effect.timeoutMs, (opened, problem) => {
          if (opened !== null) this.#open(stream, opened);
          else this.#push({ kind: "dialFailed", stream, refused: problem === "refused" });
        });
        return;
      case "write": {
        const { bytes, mark } = effect;
        const onTaken =
          mark === null ? undefined : () => this.#push({ kind: "drained", stream, mark });
        this.#streams.get(stream)?.write(bytes, onTaken);
        return;
      }
      case "prove":
        this.#streams.get(stream)?.prove();
        return;
      case "end":
        this.#streams.get(stream)?.end();
        return;
      case "destroy":
        this.#streams.get(stream)?.destroy();
        return;
      default:
        assertNever(effect);
    }
  }

  #open(stream: StreamId, opened: ByteStream): void {
    this.#streams.set(stream, opened);
    opened.onClose((isReset) => {
      this.#streams.delete(stream);
      this.#push({ kind: "closed", stream, isReset });
    });
    opened.onData((bytes) => this.#push({ kind: "bytes", stream, bytes }));
    const { host, peerUris } = opened;
    this.#push({ kind: "opened", stream, facts: { host, peerUris } });
  }
}
