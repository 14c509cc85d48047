/** A job of a cluster as a run on the terminal: the same picture, files and exit codes. */

import { userInfo } from "node:os";
import { type ClusterClient, hasEnded } from "../../client/client.ts";
import type { RunControl, RunView } from "../../core/run/results/live.ts";
import type { Control, Progress } from "../../core/tiers/messages.ts";
import { EXIT_FAILURE, EXIT_INTERRUPTED } from "../../host/exit-codes.ts";
import type { Reporting } from "../../reporters/reporting.ts";
import { complain } from "../print.ts";
import { finish, type RunFlags } from "./run.ts";

/** How often a job that is watched is asked after, and one that is not. */
const WATCHED_MS = 150;
const UNWATCHED_MS = 500;

interface Following {
  readonly client: ClusterClient;
  readonly job: string;
  readonly flags: Pick<RunFlags, "out" | "csv" | "open">;
  readonly view: RunView;
  /** Somebody looks at live figures. */
  readonly live: boolean;
  /** Results go elsewhere, too; from here, so that no secret of theirs travels. (C30-18) */
  readonly reporting: Reporting | null;
}

export async function followJob(following: Following): Promise<number> {
  const { client, flags, job, reporting, view } = following;
  const steering = new Steering(client, job, (line) => view.message(line));
  const interrupt = (): void => steering.cancel();
  process.on("SIGINT", interrupt);
  process.on("SIGTERM", interrupt);
  try {
    const end = await untilEnded(following, steering);
    if (end.summary !== null) {
      const summary = (await reporting?.finish(end.summary)) ?? end.summary;
      const code = await finish(summary, flags, view);
      if (end.status !== "PARTIAL") return code;
      complain(`hyperscale: the job ended in part only: ${end.reason ?? "something was lost"}`);
      return code === 0 ? EXIT_FAILURE : code;
    }
    view.finish(undefined);
    complain(`hyperscale: ${job} is ${end.status}: ${end.reason ?? "no reason is known"}`);
    return end.status === "CANCELLED" ? EXIT_INTERRUPTED : EXIT_FAILURE;
  } finally {
    await reporting?.abandon();
    process.off("SIGINT", interrupt);
    process.off("SIGTERM", interrupt);
  }
}

async function untilEnded(
  { client, job, live, reporting, view }: Following,
  steering: Steering,
): Promise<Progress> {
  let line = 0;
  let started = false;
  let waitsFor = "";
  const began = performance.now();
  for (;;) {
    const elapsedMs = performance.now() - began;
    const isDue = reporting?.isDue(elapsedMs) ?? false;
    const progress = await client.progress(job, line, live || isDue, isDue);
    line = progress.nextLine;
    for (const text of progress.lines) view.message(text);
    if (hasEnded(progress.status)) return progress;
    if (progress.status === "QUEUED" && progress.reason !== null && progress.reason !== waitsFor) {
      waitsFor = progress.reason;
      view.message(`queued: ${waitsFor}`);
    }
    if (progress.live !== null) {
      if (!started) view.start((command) => steering.steer(command));
      started = true;
      view.update(progress.live);
      if (isDue) reporting?.live(progress.live, elapsedMs);
    }
    await new Promise((resolve) => setTimeout(resolve, live ? WATCHED_MS : UNWATCHED_MS));
  }
}

/** What the user asks of a job that runs elsewhere. */
class Steering {
  readonly #client: ClusterClient;
  readonly #job: string;
  readonly #say: (line: string) => void;

  constructor(client: ClusterClient, job: string, say: (line: string) => void) {
    this.#client = client;
    this.#job = job;
    this.#say = say;
  }

  cancel(): void {
    this.#say("cancelling: waiting for work in flight");
    this.#control({ kind: "cancel", reason: "interrupted by its submitter" });
  }

  steer(command: RunControl): void {
    if (command.kind === "stop") this.cancel();
    else this.#control(command);
  }

  #control(control: Control): void {
    this.#client.control(this.#job, control, userInfo().username).catch((error: unknown) => {
      this.#say(`${control.kind}: ${error instanceof Error ? error.message : String(error)}`);
    });
  }
}
