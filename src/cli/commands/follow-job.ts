/** A job of a cluster as a run on the terminal: the same picture, files and exit codes. */

import { userInfo } from "node:os";
import { type ClusterClient, ClusterError, hasEnded } from "../../client/client.ts";
import { shortIdOf } from "../../client/job-names.ts";
import type { Control, Progress } from "../../core/cluster/messages.ts";
import { STARTING_SOON } from "../../core/cluster/views.ts";
import type { RunControl, RunEnd, RunView } from "../../core/load/results/live.ts";
import { EXIT_FAILURE, EXIT_INTERRUPTED, EXIT_PASSED } from "../../host/exit-codes.ts";
import { INTERRUPTED_REASON } from "../../host/interruption.ts";
import type { Reporting } from "../../reporters/reporting.ts";
import { complain } from "../print.ts";
import { Interruption } from "./interruption.ts";
import { type FinishOptions, finish } from "./run.ts";
import { ACCEPTED_POLLS_MAX, SilenceWatch, UNANSWERED_POLLS_MAX } from "./silence.ts";

/** Poll interval of a job with a live view, and without. */
const WATCHED_MS = 150;
const UNWATCHED_MS = 500;
/** A known job continues without an answering manager: it is polled for this long. */
const SILENT_MS_MAX = 600_000;

interface Following {
  readonly client: ClusterClient;
  readonly job: string;
  readonly finishing: FinishOptions;
  readonly view: RunView;
  /** Whether live metrics are shown. */
  readonly live: boolean;
  /** Without a view, the reason of a long wait goes to stderr. */
  readonly silent: boolean;
  /** Sends results elsewhere, too; from here, so that none of their secrets leaves this machine. (C30-18) */
  readonly reporting: Reporting | null;
  /** Interrupted before the job was known. */
  readonly interrupted?: boolean;
}

type Left = "detached" | "cancelling";

export async function followJob(following: Following): Promise<number> {
  const { client, finishing, job, reporting } = following;
  const view = finishedOnce(following.view);
  let left: Left | null = null;
  let leave: (how: Left) => void = () => undefined;
  const leaving = new Promise<Left>((resolve) => {
    leave = resolve;
  });
  const say = (line: string): void => {
    if (left === null) view.message(line);
  };
  const steering = new Steering(client, job, say);
  let silence: SilenceWatch | undefined;
  const interruption = new Interruption({
    ...{ keyboard: process.stdin, say, leave },
    cancel: () => {
      steering.cancel();
      silence = untilSilent(client, steering, () => leave("cancelling"));
    },
  });
  // A finished job cannot be cancelled: only reporters may still be awaited.
  let isOver = false;
  const interrupt = (): void => (isOver ? reporting?.hurry() : interruption.interrupt());
  const terminate = (): void => (isOver ? reporting?.hurry() : interruption.cancel());
  process.on("SIGINT", interrupt);
  process.on("SIGTERM", terminate);
  if (following.interrupted === true) terminate();
  try {
    const watching = { ...following, view, isLeft: () => left !== null };
    const end = await Promise.race([untilEnded(watching, steering), leaving]);
    if (typeof end === "string") {
      left = end;
      view.finish(undefined);
      return saidLeft(shortIdOf(job), end, steering.isCancelTaken);
    }
    view.job?.({ id: job, status: end.status, reason: end.reason });
    if (end.summary === null) {
      view.finish(undefined);
      complain(
        `hyperscale: ${shortIdOf(job)} is ${end.status}: ${end.reason ?? "no reason is known"}`,
      );
      return end.status === "CANCELLED" ? EXIT_INTERRUPTED : EXIT_FAILURE;
    }
    isOver = true;
    const summary = (await reporting?.finish(end.summary)) ?? end.summary;
    const code = await finish(summary, finishing, view);
    const isGivenUp = end.status === "FAILED" || end.status === "TIMED_OUT";
    if (isGivenUp && end.reason !== null)
      complain(`hyperscale: ${shortIdOf(job)} is ${end.status}: ${end.reason}`);
    if (end.status === "TIMED_OUT") return EXIT_FAILURE;
    if (end.status !== "PARTIAL") return code;
    complain(`hyperscale: the job ended in part only: ${end.reason ?? "something was lost"}`);
    return EXIT_FAILURE;
  } finally {
    await reporting?.abandon();
    process.off("SIGINT", interrupt);
    process.off("SIGTERM", terminate);
    interruption.end();
    silence?.end();
    // Also after an error: restores the terminal.
    view.finish(undefined);
  }
}

function finishedOnce(view: RunView): RunView {
  let isFinished = false;
  return {
    start: (control) => view.start(control),
    update: (live) => view.update(live),
    message: (line) => view.message(line),
    job: (job) => view.job?.(job),
    finish: (end: RunEnd | undefined) => {
      if (!isFinished) view.finish(end);
      isFinished = true;
    },
  };
}

/** After an interrupt, limits the wait for a cluster that does not answer. */
function untilSilent(
  client: ClusterClient,
  steering: Steering,
  onSilent: () => void,
): SilenceWatch {
  const pollsMax = (): number =>
    steering.isCancelTaken ? ACCEPTED_POLLS_MAX : UNANSWERED_POLLS_MAX;
  return new SilenceWatch(() => client.answers, pollsMax, onSilent);
}

function saidLeft(job: string, how: Left, isCancelTaken: boolean): number {
  const again = `follow it with: hyperscale jobs attach ${job}`;
  if (how === "detached") {
    process.stdout.write(`${job} is still running; ${again}\n`);
    return EXIT_PASSED;
  }
  if (isCancelTaken) complain(`hyperscale: ${job} is being cancelled; ${again}`);
  else
    complain(
      `hyperscale: nobody has confirmed that ${job} is cancelled, and it may still run; ` +
        `cancel it with: hyperscale jobs cancel ${job}; ${again}`,
    );
  return EXIT_INTERRUPTED;
}

interface Watching extends Following {
  /** Whether the wait was abandoned. */
  readonly isLeft: () => boolean;
}

async function untilEnded(watching: Watching, steering: Steering): Promise<Progress> {
  const { job, live, reporting, silent, view } = watching;
  let line = 0;
  let started = false;
  let waitsFor = "";
  const began = performance.now();
  for (;;) {
    const elapsedMs = performance.now() - began;
    const isDue = reporting?.isDue(elapsedMs) ?? false;
    const progress = await untilAnswered(watching, line, isDue);
    line = progress.nextLine;
    for (const text of progress.lines) view.message(text);
    if (hasEnded(progress.status)) return progress;
    const reason = progress.status === "QUEUED" ? progress.reason : null;
    if (reason !== null && reason !== waitsFor && !reason.includes(STARTING_SOON)) {
      if (silent && waitsFor === "") complain(`hyperscale: ${shortIdOf(job)} is queued: ${reason}`);
      waitsFor = reason;
      view.message(`queued: ${waitsFor}`);
    }
    if (progress.live !== null) {
      if (!started) view.start((command) => steering.steer(command));
      started = true;
      view.update(progress.live);
      if (isDue) reporting?.progress(progress.live, elapsedMs);
    }
    await new Promise((resolve) => setTimeout(resolve, live ? WATCHED_MS : UNWATCHED_MS));
  }
}

/** A job does not end because no manager answers: a quorum may be unavailable for a while. */
async function untilAnswered(
  watching: Watching,
  line: number,
  isReported: boolean,
): Promise<Progress> {
  const { client, isLeft, job, live, view } = watching;
  const began = performance.now();
  for (;;) {
    try {
      return await client.progress(job, line, live || isReported, isReported);
    } catch (error) {
      const isOpen = error instanceof ClusterError && error.isPassing;
      if (!isOpen || isLeft() || performance.now() - began > SILENT_MS_MAX) throw error;
      view.message(`${error.message}; the job goes on, and is asked after`);
    }
  }
}

/** Commands of the user for a job that runs elsewhere. */
class Steering {
  readonly #client: ClusterClient;
  readonly #job: string;
  readonly #say: (line: string) => void;
  #isCancelTaken = false;

  constructor(client: ClusterClient, job: string, say: (line: string) => void) {
    this.#client = client;
    this.#job = job;
    this.#say = say;
  }

  /** The cluster has confirmed it. */
  get isCancelTaken(): boolean {
    return this.#isCancelTaken;
  }

  cancel(): void {
    this.#control({ kind: "cancel", reason: INTERRUPTED_REASON });
  }

  steer(command: RunControl): void {
    if (command.kind === "stop") this.cancel();
    else this.#control(command);
  }

  #control(control: Control): void {
    this.#client.control(this.#job, control, userInfo().username).then(
      () => {
        if (control.kind === "cancel") this.#isCancelTaken = true;
      },
      (error: unknown) =>
        this.#say(`${control.kind}: ${error instanceof Error ? error.message : String(error)}`),
    );
  }
}
