/** `hyperscale submit FILE|URL`: the same load as `run`, on a cluster. */

import type { Command } from "commander";
import { type ClusterClient, ClusterError } from "../../client/client.ts";
import { shortIdOf } from "../../client/job-names.ts";
import { JsonLog } from "../../host/control/json-log.ts";
import { EXIT_FAILURE, EXIT_INTERRUPTED, EXIT_PASSED, EXIT_USAGE } from "../../host/exit-codes.ts";
import { probeOutputs } from "../../reporters/file/output.ts";
import { RunError } from "../../runner/errors.ts";
import { startReportsOfOthers } from "../../runner/reports.ts";
import { prepareJob } from "../../runner/submission.ts";
import { createView } from "../../ui/view.ts";
import { reportOpening } from "../open-page.ts";
import { complain, jsonText } from "../print.ts";
import { flagOf, isMistake, openCluster, type PlaceFlags, withPlace } from "./cluster-place.ts";
import { followJob } from "./follow-job.ts";
import { UsageError } from "./ledger-target.ts";
import { logFileOf, openLogLines, withLogFile } from "./log-options.ts";
import { type RoutingFlags, routingFrom, withRouting } from "./routing-flags.ts";
import {
  checkFlags,
  explain,
  localFlags,
  optionsOf,
  type RunFlags,
  reportsOf,
  withRunFlags,
} from "./run.ts";
import { LoggedView } from "./run-log.ts";
import { SilenceWatch, UNANSWERED_POLLS_MAX } from "./silence.ts";

interface SubmitFlags extends RunFlags, PlaceFlags, RoutingFlags {
  readonly idempotencyKey?: string;
  readonly rejoin?: string;
  readonly tenant?: string;
  readonly detach?: true;
  readonly json?: true;
}

const REPORT_LATER = "`hyperscale jobs attach ID --report …` does, as long as the job runs";

const EXAMPLES = `
Examples:
  hyperscale cluster up --demo-target            in another terminal
  hyperscale submit examples/quickstart.ts
  hyperscale submit flow.ts --gate 10.0.0.1:7700,10.0.0.2:7700 --credentials client.key --out results
  hyperscale submit flow.ts --prefer eu1,eu2 --strict
  hyperscale submit flow.ts --split eu1=60,us1=40

Ctrl-C asks whether to cancel the job, to leave it running, or to go on; without a terminal it cancels, with
results, as SIGTERM does; either once more ends the command at once. A client that dies leaves the job running:
"hyperscale jobs attach ID".
Exit codes: those of run; 1 also for a job that ended in part only (PARTIAL) or timed out. A job that lost workers
is not to be trusted: 98 with --require-trusted, and 99 when more than 1 % of its arrivals were not made.`;

const SUBMIT_CORES = "CPU cores of the cluster to plan for (default: those that are free)";

export function registerSubmit(program: Command): void {
  const command = program
    .command("submit")
    .summary("run a workflow file, or load a URL, on a cluster")
    .description("Runs a workflow file or loads one URL on a cluster, with the meaning of run.");
  for (const option of localFlags()) command.addOption(option.hideHelp());
  withRouting(withLogFile(withPlace(withRunFlags(command, SUBMIT_CORES))))
    .option("--idempotency-key <key>", "submitted once, however often it is sent with this key")
    .option("--rejoin <job>", "follow this job (or last) instead, if the cluster still knows it")
    .option("--tenant <name>", "whose turn it takes in the queue, and whose quota")
    .option("--detach", "print the job's id and end")
    .option("--json", "events as lines of JSON, as --ui json; with --detach one line with the id")
    .addHelpText("after", EXAMPLES)
    .action(async (target: string, given: SubmitFlags) => {
      const flags: SubmitFlags = given.json === true ? { ...given, ui: "json" } : given;
      process.exitCode = await submitCommand(target, flags);
    });
}

async function submitCommand(target: string, flags: SubmitFlags): Promise<number> {
  try {
    checkFlags(flags);
    refuseLocal(flags);
    await probeOutputs(flags.out);
    return await submit(target, flags);
  } catch (error) {
    if (error instanceof UsageError || error instanceof ClusterError) {
      complain(`hyperscale submit: ${error.message}`);
      return isMistake(error) ? EXIT_USAGE : EXIT_FAILURE;
    }
    if (error instanceof RunError) return explain(error);
    throw error;
  }
}

/**
 * Rejects flags that only apply on this machine: an unwanted load, or a file that stays empty, is worse than an error.
 */
function refuseLocal({ inspect, samples, trace }: SubmitFlags): void {
  const local = { "--trace": trace, "--inspect": inspect, "--samples": samples };
  const [flag] = Object.entries(local).find(([, value]) => value !== undefined) ?? [];
  if (flag !== undefined)
    throw new UsageError(`${flag} is of "hyperscale run" alone: a cluster does not have it`);
}

interface Joined {
  readonly id: string;
  /** The job was submitted before. */
  readonly isFormer: boolean;
}

/** The job to follow instead, when the cluster knows it. */
async function joinedOr(
  client: ClusterClient,
  former: string | undefined,
  submit: () => Promise<string>,
): Promise<Joined> {
  try {
    if (former !== undefined) {
      const { id } = await client.status(await client.jobId(former));
      return { id, isFormer: true };
    }
  } catch (error) {
    if (!(error instanceof ClusterError && error.reason === "unknownJob")) throw error;
  }
  return { id: await submit(), isFormer: false };
}

const NOT_KNOWN =
  "hyperscale submit: nobody has answered yet, and the cluster may have taken the job all the same; " +
  '"hyperscale jobs list" shows it, "hyperscale jobs cancel ID" cancels it';

/**
 * A signal while the cluster decides: whether there is a job is unknown, and ending now could leave one that nobody
 * follows. The first one waits for the answer while the cluster is alive, the second ends the command.
 */
class EarlyInterrupt {
  /** Null: interrupted, and no answer. */
  readonly givenUp: Promise<null>;
  readonly #client: ClusterClient;
  #silence: SilenceWatch | undefined;
  #giveUp: (none: null) => void = () => undefined;
  readonly #take = (): void => {
    if (this.#silence !== undefined) {
      complain(NOT_KNOWN);
      process.exit(EXIT_INTERRUPTED);
    }
    const pollsMax = (): number => UNANSWERED_POLLS_MAX;
    const giveUp = (): void => this.#giveUp(null);
    this.#silence = new SilenceWatch(() => this.#client.answers, pollsMax, giveUp);
    complain("cancelling as soon as the cluster has answered; Ctrl-C again ends this command");
  };

  constructor(client: ClusterClient) {
    this.#client = client;
    this.givenUp = new Promise((resolve) => {
      this.#giveUp = resolve;
    });
    process.on("SIGINT", this.#take);
    process.on("SIGTERM", this.#take);
  }

  get interrupted(): boolean {
    return this.#silence !== undefined;
  }

  end(): void {
    this.#silence?.end();
    process.off("SIGINT", this.#take);
    process.off("SIGTERM", this.#take);
  }
}

async function submit(target: string, flags: SubmitFlags): Promise<number> {
  const routing = routingFrom(flags);
  const logLines = await openLogLines(logFileOf(flags));
  const client = openCluster(flags, (option) => (option === "job" ? "--rejoin" : flagOf(option)));
  try {
    const options = optionsOf(flags);
    const { files, reports, ...prepared } = await prepareJob(target, options, complain);
    const submission = { ...prepared.submission, tenant: flags.tenant ?? null };
    const wanted = [...reportsOf(flags), ...reports];
    const submitted = (): Promise<Joined> =>
      joinedOr(client, flags.rejoin, () =>
        client.submit(submission, files, flags.idempotencyKey, routing),
      );
    if (flags.detach === true) {
      if (wanted.length > 0) complain(`nothing is reported with --detach: ${REPORT_LATER}`);
      const { id } = await submitted();
      process.stdout.write(flags.json === true ? `${jsonText({ event: "job", id })}\n` : `${id}\n`);
      return EXIT_PASSED;
    }
    const { name, tags, title } = submission;
    const run = { name, tags, title: title ?? undefined };
    let say = complain;
    const reporting = await startReportsOfOthers(wanted, run, (line) => say(line));
    const early = new EarlyInterrupt(client);
    const joined = await Promise.race([submitted(), early.givenUp])
      .catch(async (error: unknown) => {
        await reporting?.abandon();
        throw error;
      })
      .finally(() => early.end());
    if (joined === null) {
      await reporting?.abandon();
      complain(NOT_KNOWN);
      return EXIT_INTERRUPTED;
    }
    const { id: job, isFormer } = joined;
    const { env, stdin, stdout } = process;
    const opening = reportOpening(flags.open);
    const plain = createView({ mode: flags.ui, stdout, stdin, env, report: opening });
    const view =
      logLines === undefined
        ? plain
        : new LoggedView(new JsonLog("info", { run: target, job }, logLines), plain);
    view.message(`${isFormer ? "going on with" : "submitted as"} ${shortIdOf(job)}`);
    view.job?.({ id: job, status: null, reason: null });
    say = (line) => view.message(line);
    const live = flags.ui !== "none" || logLines !== undefined;
    const finishing = { ...flags, opening };
    const silent = flags.ui === "none";
    const { interrupted } = early;
    return await followJob({ client, job, finishing, view, live, silent, reporting, interrupted });
  } finally {
    await client.close();
    await logLines?.drained(1_000);
  }
}
