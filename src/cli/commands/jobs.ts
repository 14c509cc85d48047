/** `hyperscale jobs` and `hyperscale nodes`: jobs and nodes of a cluster. */

import { userInfo } from "node:os";
import type { Command } from "commander";
import { type ClusterClient, ClusterError, hasEnded } from "../../client/client.ts";
import { shortIdOf } from "../../client/job-names.ts";
import { clean } from "../../core/base/terminal-text.ts";
import type { Control, DatacenterView, NodeView } from "../../core/cluster/messages.ts";
import { doubtOf, isRejected } from "../../core/load/results/doubt.ts";
import { formatCounted } from "../../core/load/results/format.ts";
import { isScaleFactor, SCALE_FACTOR_MAX } from "../../core/load/results/scale-factor.ts";
import { EXIT_UNTRUSTED } from "../../host/exit-codes.ts";
import { OutputError, writeOutputs } from "../../reporters/file/output.ts";
import { startReportsOfOthers } from "../../runner/reports.ts";
import { createView } from "../../ui/view.ts";
import { reportOpening } from "../open-page.ts";
import { repeated } from "../option-values.ts";
import { complain, jsonText } from "../print.ts";
import { type PlaceFlags, withCluster, withPlace } from "./cluster-place.ts";
import { followJob } from "./follow-job.ts";
import { eventsText, jobJson, jobText, withShortId } from "./job-text.ts";
import { UsageError } from "./ledger-target.ts";
import { asRequired, type UiMode, uiOption, withTrustFlags } from "./run.ts";

interface JobsFlags extends PlaceFlags {
  readonly json?: true;
}

interface ResultsFlags extends JobsFlags {
  readonly out: string;
  readonly csv?: true;
  readonly requireTrusted?: boolean;
}

interface AttachFlags extends JobsFlags {
  readonly ui: UiMode;
  readonly out?: string;
  readonly csv?: true;
  readonly requireTrusted?: boolean;
  readonly open?: true;
  readonly report: readonly string[];
}

const NAMES = `
JOB is a short id as "jobs list" prints it, a unique prefix of it or of the whole id, or "last": the newest job.`;

export function registerJobs(program: Command): void {
  const jobs = program
    .command("jobs")
    .description("list, follow and control cluster jobs")
    .addHelpText("after", NAMES);
  withJson(jobs.command("list"))
    .description("all jobs that are known")
    .action((flags: JobsFlags) => withCluster("jobs list", flags, (client) => list(client, flags)));
  withJson(jobs.command("show <job>"))
    .description("one job: its status, leader, workflows and attempts")
    .action((job: string, flags: JobsFlags) =>
      withCluster("jobs show", flags, async (client) => {
        const view = await client.status(await client.jobId(job));
        process.stdout.write(flags.json === true ? `${jsonText(jobJson(view))}\n` : jobText(view));
      }),
    );
  withJson(jobs.command("events <job>"))
    .description("what happened to a job, from its log: when, what, by whom, under which token")
    .action((job: string, flags: JobsFlags) =>
      withCluster("jobs events", flags, async (client) => {
        const events = await client.events(await client.jobId(job));
        process.stdout.write(
          flags.json === true ? `${jsonText({ events })}\n` : eventsText(events),
        );
      }),
    );
  registerAttach(jobs);
  withTrustFlags(withJson(jobs.command("results <job>")))
    .description("write the files of a job that has ended")
    .requiredOption("--out <dir>", "required: folder for summary.json, report.html, junit.xml")
    .option("--csv", "also write steps.csv and series.csv")
    .action((job: string, flags: ResultsFlags) =>
      withCluster("jobs results", flags, async (client) =>
        results(client, await client.jobId(job), flags),
      ),
    );
  control(jobs.command("cancel <job>"), "end it gracefully, with results", () => ({
    kind: "cancel",
    reason: "cancelled by hand",
  }));
  control(jobs.command("pause <job>"), "users stop after their present iteration", () => ({
    kind: "pause",
  }));
  control(jobs.command("resume <job>"), "go on after a pause", () => ({ kind: "resume" }));
  control(
    jobs.command("scale <job> <factor>"),
    "users or rate, of the plan: 1 is as planned",
    (text) => {
      const factor = Number(text);
      if (!isScaleFactor(factor))
        throw new UsageError(`"${text}" is not a number above 0 and up to ${SCALE_FACTOR_MAX}`);
      return { kind: "scale", factor };
    },
  );
}

function registerAttach(jobs: Command): void {
  const attach = withPlace(jobs.command("attach <job>"))
    .description("follow a job as if it had been submitted here")
    .option("--json", "events as lines of JSON, as --ui json")
    .addOption(uiOption())
    .option("--out <dir>", "folder for summary.json, report.html, junit.xml")
    .option("--csv", "also write steps.csv and series.csv")
    .option("--open", "show the report in the browser when the job is over")
    .option("--report <name=target>", "also send the results there", repeated, []);
  withTrustFlags(attach).action((named: string, flags: AttachFlags) =>
    withCluster("jobs attach", flags, async (client) => {
      const job = await client.jobId(named);
      const { env, stdin, stdout } = process;
      const opening = reportOpening(flags.open);
      const ui = flags.json === true ? "json" : flags.ui;
      const view = createView({ mode: ui, stdout, stdin, env, report: opening });
      const silent = ui === "none";
      const how = { live: !silent, silent };
      const say = (line: string): void => view.message(line);
      const reporting = await startReportsOfOthers(flags.report, { name: job, tags: {} }, say);
      const finishing = { ...flags, opening };
      process.exitCode = await followJob({ client, job, finishing, view, ...how, reporting });
    }),
  );
}

export function registerNodes(program: Command): void {
  const nodes = withJson(program.command("nodes")).description(
    "gates, managers and workers of a cluster",
  );
  withPlace(nodes.command("remove <node>"))
    .description("forget a worker that is gone for good")
    .action((node: string, _flags: PlaceFlags, command: Command) =>
      // The flags of `nodes` itself have the same names, and are the ones that commander fills.
      withCluster("nodes remove", command.optsWithGlobals(), async (client) => {
        await client.removeNode(node);
        process.stdout.write(`${node} is forgotten\n`);
      }),
    );
  nodes.action((flags: JobsFlags) =>
    withCluster("nodes", flags, async (client) => {
      printNodes(await client.nodes(), flags.json === true);
    }),
  );
}

export function registerDatacenters(program: Command): void {
  withJson(program.command("datacenters"))
    .description("datacenters of a cluster, and what room they have")
    .action((flags: JobsFlags) =>
      withCluster("datacenters", flags, async (client) => {
        const datacenters = await client.datacenters();
        if (flags.json === true) process.stdout.write(`${jsonText({ datacenters })}\n`);
        else
          for (const datacenter of datacenters)
            process.stdout.write(`${datacenterLine(datacenter)}\n`);
      }),
    );
}

function datacenterLine(datacenter: DatacenterView): string {
  const { circuit, cores, coresFree, jobsQueued, name, status, workers } = datacenter;
  const waiting = `${formatCounted(jobsQueued, "job")} waiting`;
  const room = `${formatCounted(workers, "worker")}, ${coresFree}/${cores} cores free, ${waiting}`;
  const { operationsQueued } = datacenter;
  const closed = circuit === "CLOSED" && operationsQueued === 0;
  const way = closed ? "" : `, circuit ${circuit}, ${operationsQueued} operations wait for it`;
  return `${name.padEnd(12)} ${status.padEnd(12)} ${room}${way}`;
}

export function printNodes(nodes: readonly NodeView[], json: boolean): void {
  const warnings = doubtsOf(nodes);
  if (json) {
    process.stdout.write(`${jsonText({ nodes, warnings })}\n`);
    return;
  }
  for (const node of inOrder(nodes)) process.stdout.write(`${nodeLine(node)}\n`);
  for (const warning of warnings) complain(`hyperscale nodes: ${warning}`);
}

function nodeLine(node: NodeView): string {
  const { cores, coresUsed, diskProblem = "", health = "", leads, name, role, status } = node;
  const well = status === "alive" ? health : "";
  const used =
    role === "worker"
      ? `${coresUsed}/${cores} cores  ${well.padEnd(9)} ${jobCodeText(node)}`
      : `leads ${formatCounted(leads, "job")}`;
  const disk = diskProblem === "" ? "" : `  disk: ${diskProblem}`;
  const line = `${name.padEnd(12)} ${role.padEnd(8)} ${status.padEnd(9)} ${used.trimEnd()}`;
  return `${line.trimEnd()}${disk}`;
}

/** Rights of job code on a worker; empty if not reported. */
function jobCodeText({ executorUser = "", jobCodeRights = "" }: NodeView): string {
  if (jobCodeRights === "worker") return "job code has the worker's rights";
  return jobCodeRights === "" ? "" : `job code runs as ${executorUser}`;
}

/** A node that reaches no majority of its kind is not ready, and its view of the others may be wrong. */
export function doubtsOf(nodes: readonly NodeView[]): readonly string[] {
  const kindOf = ({ datacenter, role }: NodeView): string =>
    role === "gate" ? "gates" : `managers of ${datacenter}`;
  const judged = nodes.filter(({ role }) => role !== "worker");
  return [...new Set(judged.map(kindOf))].flatMap((kind) => {
    const members = judged.filter((node) => kindOf(node) === kind);
    const reached = members.filter(({ status }) => status !== "lost").length;
    if (reached * 2 > members.length) return [];
    const seen = `the node that answered reaches ${reached} of ${members.length} ${kind}`;
    return [`${seen}: it is not ready, and others may do better than it says; ask another one`];
  });
}

/** As reported, datacenter by datacenter, and by name among equals. */
function inOrder(nodes: readonly NodeView[]): readonly NodeView[] {
  const groupOf = ({ datacenter, role }: NodeView): string => `${datacenter} ${role}`;
  const groups = [...new Set(nodes.map(groupOf))];
  return nodes.toSorted(
    (one, other) =>
      groups.indexOf(groupOf(one)) - groups.indexOf(groupOf(other)) ||
      (one.name < other.name ? -1 : 1),
  );
}

function withJson(command: Command): Command {
  return withPlace(command).option("--json", "the answer as JSON");
}

function control(command: Command, description: string, of: (argument: string) => Control): void {
  withJson(command)
    .description(description)
    .action((...given: unknown[]) => {
      const [named, argument] = given as [string, string];
      // Commander passes the arguments, the flags and itself.
      const flags = given.at(-2) as JobsFlags;
      return withCluster(`jobs ${command.name()}`, flags, async (client) => {
        const control = of(argument);
        const job = await client.jobId(named);
        await client.control(job, control, userInfo().username);
        const taken = { job, taken: control };
        process.stdout.write(
          flags.json === true
            ? `${jsonText(taken)}\n`
            : `${shortIdOf(job)}: ${command.name()} accepted\n`,
        );
      });
    });
}

async function results(client: ClusterClient, job: string, flags: ResultsFlags): Promise<void> {
  const { reason, status, summary } = await client.progress(job, 0, false, false);
  const short = shortIdOf(job);
  if (!hasEnded(status))
    throw new ClusterError(`${short} is ${status}: it has no results yet`, null);
  if (summary === null) {
    const why = reason === null ? "" : `: ${reason}`;
    throw new ClusterError(`${short} is ${status} and left no results${why}`, null);
  }
  const { csv, json, out: folder, requireTrusted } = flags;
  const judged = asRequired(summary, requireTrusted);
  const files = await writeOutputs(judged, { folder, csv }).catch((error: unknown) => {
    throw error instanceof OutputError ? new UsageError(error.message) : error;
  });
  if (json === true) process.stdout.write(`${jsonText({ job, status, files })}\n`);
  else for (const file of files) process.stdout.write(`${file}\n`);
  // The requested files exist: only an unreliable result is an error here.
  if (!isRejected(judged)) return;
  complain(`hyperscale jobs results: ${short} is not to be trusted: ${doubtOf(judged)}`);
  process.exitCode = EXIT_UNTRUSTED;
}

async function list(client: ClusterClient, { json }: JobsFlags): Promise<void> {
  const jobs = await client.jobs();
  if (json === true) {
    process.stdout.write(`${jsonText({ jobs: jobs.map(withShortId) })}\n`);
    return;
  }
  for (const { createdAt, id, name, reason, status } of jobs) {
    const why = reason === null ? "" : `  (${reason})`;
    const at = new Date(createdAt).toISOString();
    process.stdout.write(`${shortIdOf(id)}  ${status.padEnd(10)} ${at}  ${clean(name + why)}\n`);
  }
}
