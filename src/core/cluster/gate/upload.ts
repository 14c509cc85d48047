/**
 * Uploads files of a job from this gate to a manager, one chunk at a time. A gate that took over a job may not have
 * them: then it relays them chunk by chunk from a datacenter that has.
 */

import type { BlobHash } from "../messages.ts";
import type { GateContext } from "./context.ts";

/** Rejected chunks before an upload fails; the caller may start again. */
const FAILURES_MAX = 3;

export const FILES_ABSENT =
  "neither the gate that leads it nor any manager that it reaches has its files";

type Part = (bytes: Uint8Array | null, total: number) => void;

interface UploadTo {
  readonly datacenter: string;
  readonly manager: string;
}

/** Calls `done` with the problem, or null when all files are uploaded. */
export function upload(
  context: GateContext,
  { datacenter, manager }: UploadTo,
  hashes: readonly BlobHash[],
  done: (problem: string | null) => void,
): void {
  const [hash, ...rest] = hashes;
  if (hash === undefined) {
    done(null);
    return;
  }
  let failures = 0;
  const send = (offset: number): void =>
    readPart(context, { hash, offset, to: datacenter }, (bytes, total) => {
      if (bytes === null) {
        done(FILES_ABSENT);
        return;
      }
      const put = { kind: "blobPut", hash, offset, total, bytes } as const;
      context.ask({ datacenter, manager, message: put }, (answer) => {
        if (answer?.kind === "refused") done(answer.message);
        else if (answer?.kind === "blobHeld") {
          if (answer.bytes < total) send(answer.bytes);
          else upload(context, { datacenter, manager }, rest, done);
        } else if (++failures < FAILURES_MAX) send(offset);
        else done(`${manager} does not take its files`);
      });
    });
  send(0);
}

interface Wanted {
  readonly hash: BlobHash;
  readonly offset: number;
  readonly to: string;
}

/** Reads a chunk from here, or from any manager of another datacenter that has it. */
function readPart(context: GateContext, { hash, offset, to }: Wanted, done: Part): void {
  const others = context.options.datacenters.filter(({ name }) => name !== to);
  const places = others.flatMap(({ name: datacenter }) =>
    context.calls.reachedIn(datacenter).map((manager) => ({ datacenter, manager })),
  );
  const next = (): void => {
    const place = places.shift();
    if (place === undefined) {
      done(null, 0);
      return;
    }
    context.ask({ ...place, message: { kind: "blobGet", hash, offset } }, (answer) => {
      if (answer?.kind === "blobChunk") done(answer.bytes, answer.total);
      else next();
    });
  };
  context.readPart(hash, offset, (bytes, total) => {
    if (bytes === null) next();
    else done(bytes, total);
  });
}
