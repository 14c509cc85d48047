/** Files of a job on their way from this gate to a manager of a datacenter, one part at a time. */

import type { BlobHash } from "../messages.ts";
import type { GateContext } from "./context.ts";

/** Parts that were not taken before the whole is given up; whoever wants it begins again. */
const FAILURES_MAX = 3;

interface UploadTo {
  readonly datacenter: string;
  readonly manager: string;
}

/** Why it did not come about; null when all of them are there. */
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
    context.readPart(hash, offset, (bytes, total) => {
      if (bytes === null) {
        done("its files are not at the gate that leads it");
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
