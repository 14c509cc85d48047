/**
 * `npm run bench:ledger`: three real processes on loopback, every commit synced to disk by a quorum, a
 * thousand jobs; etcd beside it in turns, with the same payload and as many requests in flight; and how
 * long a job waits when its primary dies.
 */

import { cpus, totalmem } from "node:os";
import { parseArgs } from "node:util";
import type { NodeId } from "../../src/core/base/ids.ts";
import { encodeEvent } from "../../src/core/ledger/job/event-codec.ts";
import type { JobId } from "../../src/core/ledger/job/job-id.ts";
import { acceptedEvent, commits } from "./commits.ts";
import { etcdPuts } from "./etcd.ts";
import { failover } from "./failover.ts";
import type { Metered } from "./meter.ts";

const HELP = `usage: npm run bench:ledger -- [--jobs 1000] [--window 8] [--seconds 10] [--rounds 2]
                              [--no-etcd] [--no-failover] [--profile] [--json]
`;
const COMMITS_MIN = 10_000;
const FAILOVER_LEASE_MS = 3_000;
const FAILOVER_ROUNDS = 3;
const HAND_OVER_MS_MAX = 1_000;
const WARM_MS = 3_000;

const { values } = parseArgs({
  allowNegative: true,
  options: {
    jobs: { type: "string", default: "1000" },
    window: { type: "string", default: "8" },
    seconds: { type: "string", default: "10" },
    rounds: { type: "string", default: "2" },
    etcd: { type: "boolean", default: true },
    failover: { type: "boolean", default: true },
    profile: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});
if (values.help) {
  process.stdout.write(HELP);
  process.exit(0);
}

const jobs = Number(values.jobs);
const window = Number(values.window);
const seconds = Number(values.seconds);
const say = (text: string): void => {
  process.stderr.write(`${text}\n`);
};
const show = (name: string, one: Metered): void => {
  const cost = `CPU ${one.cpuUsEach} us each, client ${one.clientCpuUsEach} us`;
  say(
    `${name}: ${one.perSecond}/s, p50 ${one.p50Ms} ms, p99 ${one.p99Ms} ms, ${cost}, ${one.failures} failed`,
  );
};

const model = cpus()[0]?.model ?? "unknown";
const hardware = `${cpus().length} x ${model}, ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.version}`;
say(hardware);
const sample = { id: "use1-1704931200000-n1-00001" as JobId, node: "n1" as NodeId };
const payload = encodeEvent(acceptedEvent(sample, "e100000"));
const ours: Metered[] = [];
const theirs: Metered[] = [];
let etcd: string | null = null;
// In turns, so that both meet the same machine.
for (let round = 0; round < Number(values.rounds); round++) {
  const one = await commits({ jobs, window, seconds, warmMs: WARM_MS, profile: values.profile });
  show("ledger", one);
  ours.push(one);
  if (!values.etcd) continue;
  const inFlight = jobs * window;
  const other = await etcdPuts({ keys: jobs, seconds, warmMs: WARM_MS, inFlight, payload });
  if (other === null) {
    say("skipped: etcd is not installed (apt: etcd-server etcd-client)");
    break;
  }
  etcd = other.version;
  show("etcd", other);
  theirs.push(other);
}
// One event at a time: the duration of an acknowledgement without contention.
const calm = await commits({ jobs: 4, window: 1, seconds: 3, warmMs: WARM_MS, profile: false });
const after = (by: "SIGKILL" | "SIGTERM") => failover(FAILOVER_LEASE_MS, FAILOVER_ROUNDS, by);
const taken = values.failover ? await after("SIGKILL") : null;
const handed = values.failover ? await after("SIGTERM") : null;

const best = (all: readonly Metered[]): number =>
  Math.max(0, ...all.map(({ perSecond }) => perSecond));
const ratio = theirs.length === 0 ? null : Number((best(ours) / best(theirs)).toFixed(2));
const slowest = (times: typeof taken): string =>
  times === null ? "skipped" : `${Math.max(...times.timesMs)} ms at most`;
const result = {
  hardware,
  jobs,
  window,
  payloadBytes: payload.length,
  ours,
  etcd,
  theirs,
  ratio,
  calm,
  taken,
  handed,
};
if (values.json) process.stdout.write(`${JSON.stringify(result, null, 2)}\n`);
else {
  const oneEvent = `${calm.p50Ms}, ${calm.p99Ms} ms`;
  const row = (name: string, value: string, must: string): string =>
    `${name.padEnd(58)}${value.padEnd(22)}${must}\n`;
  process.stdout.write(
    row("figure", "measured", "must") +
      row(
        `commits/s, 3 processes, fsync on, ${jobs} jobs`,
        `${best(ours)}/s`,
        `>= ${COMMITS_MIN}/s`,
      ) +
      row(
        "  against etcd's puts/s, same payload and concurrency",
        ratio === null ? "skipped" : `${ratio} x`,
        ">= 1 x",
      ) +
      row(
        `failover of a job's primary, lease ${FAILOVER_LEASE_MS} ms`,
        slowest(taken),
        `<= ${FAILOVER_LEASE_MS + 2_000} ms`,
      ) +
      row("hand-over of a job's primary at SIGTERM", slowest(handed), `<= ${HAND_OVER_MS_MAX} ms`) +
      row("\ntargets of the ledger design", "measured", "target") +
      row("job events/s per region", `${best(ours)}/s`, "> 100000/s") +
      "  three nodes and the client share the cores of this machine; per core it is the CPU above\n" +
      row("p50, p99 of one event, REGIONAL: on a quorum of disks", oneEvent, "< 10 ms") +
      row("p50, p99 of one event, LOCAL", oneEvent, "< 1 ms") +
      "  there is no weaker acknowledgement: one disk alone may be lost\n" +
      row("p50, p99 of one event, GLOBAL", "not here", "< 300 ms") +
      "  a quorum over regions adds one round trip between them; one machine has one region\n" +
      row("crash to serving", slowest(taken), "< 30000 ms"),
  );
}
