/** `hyperscale ledger watch`: commits as they happen, across the loss of nodes. */

import type { Command } from "commander";
import { clean } from "../../core/base/terminal-text.ts";
import { eventJson } from "../../ledger/api-json.ts";
import { type Followed, type FollowedItem, LedgerFollower } from "../../ledger/follower.ts";
import { listed } from "../option-values.ts";
import { complain, jsonText } from "../print.ts";
import { type Common, runCommand, UsageError, withTarget } from "./ledger-target.ts";

interface WatchOptions extends Common {
  readonly prefix?: string;
  readonly after?: readonly string[];
  readonly new?: boolean;
  readonly count?: number;
}

const HELP = `
Without JOB: all jobs of the node that is asked, or those whose ids begin with --prefix. Every event comes
once and in order of its job; when a node is lost, the next of --api goes on after the last place. A line
"behind" says that events up to a place have left the log: read the job to see what they made of it.

Examples:
  $ hyperscale ledger watch JOB --api 127.0.0.1:7201,127.0.0.1:7202,127.0.0.1:7203
  $ hyperscale ledger watch JOB --after 4                   only what came after place 4
  $ hyperscale ledger watch --new --json                    all jobs of a node, from now on
  $ hyperscale ledger watch --after JOB=4 --after JOB2=7    go on with two jobs, and all others from their start

Ends with Ctrl-C, after --count items, or when JOB goes to the archive.
`;

export function registerLedgerWatch(ledger: Command): void {
  withTarget(ledger.command("watch [job]"))
    .description("what is committed, as it is, over the loss of nodes")
    .option("--prefix <text>", "jobs whose ids begin so")
    .option("--after <place>", "seen up to: a place of JOB, or JOB=PLACE; repeat", listed)
    .option("--new", "only what is committed from now on")
    .option("--count <n>", "end after so many items", Number)
    .addHelpText("after", HELP)
    .action((job: string | undefined, options: WatchOptions) =>
      runCommand(() => watch(job, options)),
    );
}

async function watch(job: string | undefined, options: WatchOptions): Promise<void> {
  const { count } = options;
  if (count !== undefined && !(Number.isInteger(count) && count > 0)) {
    throw new UsageError("--count: a whole number above 0");
  }
  let items = 0;
  const follower: LedgerFollower = new LedgerFollower(options, {
    ...followed(job, options),
    onItem: (item) => {
      // Items of one frame arrive together; those after the last are not wanted.
      if (items === count) return;
      items++;
      const line = options.json === true ? jsonText(itemJson(item)) : textOf(item);
      if (!process.stdout.write(`${line}\n`)) follower.pause();
      if (items === count) follower.stop();
    },
    onMoved: (why) => complain(`hyperscale ledger: ${clean(why)}; asking the next`),
  });
  process.stdout.on("drain", () => follower.resume());
  const stop = (): void => follower.stop();
  process.once("SIGINT", stop).once("SIGTERM", stop);
  await follower.run();
}

function followed(
  job: string | undefined,
  { prefix, after = [], new: onlyNew }: WatchOptions,
): Followed {
  if (job !== undefined && prefix !== undefined) {
    throw new UsageError("JOB and --prefix: give one of them");
  }
  const places = after.map((text) => placeOf(text, job));
  const since = onlyNew === true ? "now" : "start";
  return { job: job ?? null, prefix: prefix ?? "", after: places, since };
}

function placeOf(text: string, job: string | undefined): Followed["after"][number] {
  const [name = "", place] = text.includes("=") ? text.split("=", 2) : [job, text];
  const seq = Number(place);
  if (name !== "" && place !== "" && Number.isSafeInteger(seq) && seq >= -1) {
    return { job: name, seq };
  }
  throw new UsageError(`--after ${text}: write a place of JOB, or JOB=PLACE`);
}

function itemJson(item: FollowedItem): Record<string, unknown> {
  return item.kind === "event" || item.kind === "stop"
    ? { ...item, event: eventJson(item.event) }
    : item;
}

function textOf(item: FollowedItem): string {
  const job = clean(item.jobId);
  switch (item.kind) {
    case "archived":
      return `${job}  archived`;
    case "stop":
      return clean(`${job}  stop, not committed yet  ${item.event.kind}  ${item.event.eventId}`);
    case "behind":
      return `${job}  behind: events up to place ${item.seq} have left the log`;
    case "event": {
      const { seq, view, event, outcome, reason } = item;
      const at = new Date(event.hlc.wallMs).toISOString();
      const why = reason === null ? outcome : `${outcome}: ${reason}`;
      return clean(
        `${job}  ${seq} in view ${view}  ${at}  ${event.kind}  ${why}  ${event.eventId}`,
      );
    }
  }
}
