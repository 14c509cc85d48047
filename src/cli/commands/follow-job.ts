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
import { SilenceWatch, TAKEN_LOOKS_MAX, UNHEARD_LOOKS_MAX } from "./silence.ts";

/** How often a job that is watched is asked after, and one that is not. */
const WATCHED_MS = 150;
const UNWATCHED_MS = 500;
/** A job that is known goes on while no manager answers for it: so long is it asked after. */
const SILENT_MS_MAX = 600_000;

interface Following {
  readonly client: ClusterClient;
  readonly job: string;
  readonly finishing: FinishOptions;
  readonly view: RunView;
  /** Somebody looks at live figures. */
  readonly live: boolean;
  /** Nothing is shown meanwhile: what explains a long silence goes to stderr. */
  readonly silent: boolean;
  /** Results go elsewhere, too; from here, so that no secret of theirs travels. (C30-18) */
  readonly reporting: Reporting | null;
  /** It was interrupted before it was known which job it is. */
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
  // Of a job that has ended there is nothing to cancel: only reporters may still be waited for.
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
    // Also after an error: it gives the terminal back.
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

/** Whoever was told to end does not wait for ever for a cluster that does not answer. */
function untilSilent(
  client: ClusterClient,
  steering: Steering,
  onSilent: () => void,
): SilenceWatch {
  const looksMax = (): number => (steering.isCancelTaken ? TAKEN_LOOKS_MAX : UNHEARD_LOOKS_MAX);
  return new SilenceWatch(() => client.answers, looksMax, onSilent);
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
  /** Nobody waits for it any more. */
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

/** A job does not end because nobody can be asked: a quorum of managers may be away for a while. */
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

/** What the user asks of a job that runs elsewhere. */
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
