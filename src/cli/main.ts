/**
 * The command line: one file per command under commands/, each of which registers itself. Only the file of the called
 * command is loaded; the list below is what `--help` shows of the others.
 */

import { Command, CommanderError, Help, type Option } from "commander";
import { errorText } from "../core/base/error-text.ts";
import { EXIT_FAILURE, EXIT_USAGE } from "../host/exit-codes.ts";
import { RunError } from "../runner/errors.ts";
import { packageVersion } from "../runner/version.ts";
import { complain } from "./print.ts";

type Register = (program: Command) => void;

interface Listed {
  readonly group: string;
  readonly usage: string;
  readonly summary: string;
  readonly load: () => Promise<Register>;
}

const MAIN = "Commands:";
const LOAD = "More for load tests:";
const CLUSTER = "Jobs and nodes of a cluster:";
const INTERNALS = "Internals (membership agents, job ledger, write-ahead log):";

/** In the order of `--help`. Usage and summary are those of the command itself (cli/main.test.ts). */
export const COMMANDS: Readonly<Record<string, Listed>> = {
  run: {
    group: MAIN,
    usage: "[options] <file|url>",
    summary: "run a workflow file, or load a URL",
    load: async () => (await import("./commands/run.ts")).registerRun,
  },
  new: {
    group: MAIN,
    usage: "[options] [file]",
    summary: "write a first flow that runs against the bundled demo target",
    load: async () => (await import("./commands/new.ts")).registerNew,
  },
  ping: {
    group: MAIN,
    usage: "[options] <url>",
    summary: "send one request and show where its time went",
    load: async () => (await import("./commands/ping.ts")).registerPing,
  },
  "demo-target": {
    group: MAIN,
    usage: "[options]",
    summary: "start the bundled server to load: fast, slow, failing and stalling endpoints",
    load: async () => (await import("./commands/demo-target.ts")).registerDemoTarget,
  },
  compare: {
    group: MAIN,
    usage: "[options] <before> <after>",
    summary: "compare two runs and fail on a regression",
    load: async () => (await import("./commands/compare.ts")).registerCompare,
  },
  report: {
    group: MAIN,
    usage: "[options] <results>",
    summary: "regenerate a report, or overlay an earlier run",
    load: async () => (await import("./commands/report.ts")).registerReport,
  },
  trends: {
    group: MAIN,
    usage: "[options] <directory>",
    summary: "show the last runs of a workflow side by side",
    load: async () => (await import("./commands/trends.ts")).registerTrends,
  },
  submit: {
    group: MAIN,
    usage: "[options] <file|url>",
    summary: "run a workflow file, or load a URL, on a cluster",
    load: async () => (await import("./commands/submit.ts")).registerSubmit,
  },
  cluster: {
    group: MAIN,
    usage: "[options] [command]",
    summary: "a cluster on this machine: gates, managers and workers, each a process of its own",
    load: async () => (await import("./commands/cluster.ts")).registerCluster,
  },
  queue: {
    group: MAIN,
    usage: "[options] [command]",
    summary: "the durable task queue: run a node, submit work, see and cancel it",
    load: async () => (await import("./commands/queue.ts")).registerQueue,
  },
  types: {
    group: LOAD,
    usage: "[options] <file>",
    summary: "write the types of a target, of a .proto file or an OpenAPI document",
    load: async () => (await import("./commands/types.ts")).registerTypes,
  },
  reporters: {
    group: LOAD,
    usage: "[options] [name]",
    summary: "where results can be sent, with the settings of each",
    load: async () => (await import("./commands/reporters.ts")).registerReporters,
  },
  publish: {
    group: LOAD,
    usage: "[options] <results>",
    summary: "send the results of an earlier run to reporters",
    load: async () => (await import("./commands/publish.ts")).registerPublish,
  },
  jobs: {
    group: CLUSTER,
    usage: "[options] [command]",
    summary: "list, follow and control cluster jobs",
    load: async () => (await import("./commands/jobs.ts")).registerJobs,
  },
  nodes: {
    group: CLUSTER,
    usage: "[options] [command]",
    summary: "gates, managers and workers of a cluster",
    load: async () => (await import("./commands/jobs.ts")).registerNodes,
  },
  datacenters: {
    group: CLUSTER,
    usage: "[options]",
    summary: "datacenters of a cluster, and what room they have",
    load: async () => (await import("./commands/jobs.ts")).registerDatacenters,
  },
  drain: {
    group: CLUSTER,
    usage: "[options] <node>",
    summary: "stop a node taking work and wait until it is idle",
    load: async () => (await import("./commands/drain.ts")).registerDrain,
  },
  gate: {
    group: CLUSTER,
    usage: "[options] [command]",
    summary: "a gate of a cluster: takes jobs, and has them run in datacenters",
    load: async () => (await import("./commands/gate.ts")).registerGate,
  },
  manager: {
    group: CLUSTER,
    usage: "[options] [command]",
    summary: "a manager of a datacenter: places jobs on workers, and merges what they measure",
    load: async () => (await import("./commands/manager.ts")).registerManager,
  },
  worker: {
    group: CLUSTER,
    usage: "[options] [command]",
    summary: "a worker of a datacenter: runs the load of jobs in executor cores",
    load: async () => (await import("./commands/worker.ts")).registerWorker,
  },
  audit: {
    group: CLUSTER,
    usage: "[options] <directory>",
    summary: "who asked a node for what, and when",
    load: async () => (await import("./commands/audit.ts")).registerAudit,
  },
  keygen: {
    group: CLUSTER,
    usage: "[options]",
    summary: "print a new cluster secret: 256 random bits",
    load: async () => (await import("./commands/keygen.ts")).registerKeygen,
  },
  agent: {
    group: INTERNALS,
    usage: "[options]",
    summary: "run a member of a cluster in the foreground",
    load: async () => (await import("./commands/agent.ts")).registerAgent,
  },
  members: {
    group: INTERNALS,
    usage: "[options]",
    summary: "list the members of a cluster",
    load: async () => (await import("./commands/members.ts")).registerMembers,
  },
  monitor: {
    group: INTERNALS,
    usage: "[options]",
    summary: "follow membership and leadership events; Ctrl-C ends",
    load: async () => (await import("./commands/monitor.ts")).registerMonitor,
  },
  leave: {
    group: INTERNALS,
    usage: "[options]",
    summary: "make an agent leave its cluster and end",
    load: async () => (await import("./commands/leave.ts")).registerLeave,
  },
  keys: {
    group: INTERNALS,
    usage: "[options] [command]",
    summary: "see and rotate the keys of a running agent",
    load: async () => (await import("./commands/keygen.ts")).registerKeys,
  },
  ledger: {
    group: INTERNALS,
    usage: "[options] [command]",
    summary: "the replicated job ledger: run a node, submit and read jobs",
    load: async () => (await import("./commands/ledger.ts")).registerLedger,
  },
  wal: {
    group: INTERNALS,
    usage: "[options] [command]",
    summary: "look at a write-ahead log: inspect, verify, dump",
    load: async () => (await import("./commands/wal.ts")).registerWal,
  },
};

export async function main(argv: readonly string[]): Promise<void> {
  const program = new Command("hyperscale");
  program.description(
    "Load testing and durable workflows in TypeScript, from one laptop to many datacenters.",
  );
  program.version(packageVersion(), "-V, --version");
  program.showHelpAfterError("(add --help for the options)");
  program.addHelpText("before", START_HERE);
  program.addHelpText("after", EXIT_CODES);
  program.configureHelp({
    subcommandTerm: (command) => `${command.name()} ${command.usage()}`,
    optionDescription,
  });
  endUnread(argv);
  try {
    const called = commandIn(argv);
    await register(program, called);
    throwInsteadOfExit(program);
    // Commander answers help on something unknown with help on everything.
    if (argv[0] === "help" && called !== undefined && !(called in COMMANDS)) {
      program.error(`error: unknown command '${called}'`);
    }
    if (argv.length === 0) program.outputHelp();
    else if (argv.length === 1 && argv[0] === "version")
      process.stdout.write(`${packageVersion()}\n`);
    else await program.parseAsync(argv, { from: "user" });
  } catch (error) {
    process.exitCode = explain(error);
  }
}

/** Commands with more to do than to print. */
const OUTLIVE_READERS: readonly string[] = ["run", "submit", "demo-target", "agent", "start", "up"];

/** The reader of the output has closed, as `head` does. Views and followers handle it themselves. */
function endUnread(argv: readonly string[]): void {
  const livesOn = argv.some((word) => OUTLIVE_READERS.includes(word));
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
    if (!livesOn && process.stdout.listenerCount("error") === 1) process.exit(EXIT_FAILURE);
  });
}

/** The name of a command: the first argument, or the one after `help`. */
function commandIn(argv: readonly string[]): string | undefined {
  const words = argv.filter((word) => !word.startsWith("-"));
  return words[0] === "help" ? words[1] : words[0];
}

/** Registers the called command completely, the others by name. */
async function register(program: Command, called: string | undefined): Promise<void> {
  for (const [name, { group, usage, summary, load }] of Object.entries(COMMANDS)) {
    program.commandsGroup(group);
    if (name === called) (await load())(program);
    else program.command(name).usage(usage).summary(summary);
  }
}

/** Prints one line for people; the stack only on request. */
function explain(error: unknown): number {
  // Commander has already reported what is wrong with the arguments.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT_USAGE;
  const debug = process.env["HYPERSCALE_DEBUG"] !== undefined && error instanceof Error;
  complain(`hyperscale: ${debug ? error.stack : errorText(error)}`);
  return error instanceof RunError ? error.exitCode : EXIT_FAILURE;
}

/** Handles wrong arguments with our exit code, in every command however deep. */
function throwInsteadOfExit(command: Command): void {
  command.exitOverride();
  for (const child of command.commands) throwInsteadOfExit(child);
}

/** Hides empty lists as defaults. */
function optionDescription(this: Help, option: Option): string {
  return Help.prototype.optionDescription.call(this, option).replace(" (default: [])", "");
}

const START_HERE = `Start here:
  hyperscale demo-target                 a safe server on this machine to practise on
  hyperscale run http://127.0.0.1:8089   load a URL, no file needed
  hyperscale new flow.ts                 write a first flow
  hyperscale run flow.ts                 run it
`;

const EXIT_CODES = `
Exit codes: 0 passed, 99 a threshold or check failed, 2 wrong workflow or arguments,
            130 interrupted (results are written), 1 anything else.`;
