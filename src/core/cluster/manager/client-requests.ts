/** Client requests to a manager, answered from the folded state or by the manager that leads the job. */

import { assertNever } from "../../base/assert.ts";
import type { RunSummary } from "../../load/results/model.ts";
import {
  type BlobHash,
  type ClientAnswer,
  type ClientRequest,
  ENDED_STATUSES,
  EVENTS_PAGE_MAX,
  type JobDatacenterView,
  type JobStatus,
  type JobView,
  type RefusalReason,
  refusal,
  type Watch,
} from "../messages.ts";
import { cutShort, figuresOf, pageOfJobs } from "../pages.ts";
import type { ManagerContext } from "./context.ts";
import { type DatacenterJob, encodeDatacenterEntry } from "./datacenter-state.ts";
import { eventsOf, foldedStatus, hasWholeLog, workflowViews } from "./job-history.ts";
import type { NodeRequests } from "./node-requests.ts";
import type { Proposed } from "./proposals.ts";
import type { RunLeader } from "./run-leader.ts";
import { decodeResult } from "./run-result.ts";
import { Submits } from "./submits.ts";

/** Results of finished jobs kept in memory. */
const SUMMARIES_MAX = 20;
/** Requests that may wait for blob reads. */
const READERS_MAX = 1_000;

/** Knowledge of the manager as a whole. */
type Asked = Extract<ClientRequest, { kind: "control" }>;

interface RequestsHost {
  leaderOf(job: string): RunLeader | null;
  /** True on the leader of the datacenter, whose view of waiting jobs is authoritative. */
  leadsDatacenter(): boolean;
  /** Reason why a job waits. */
  reasonOf(job: string): string | null;
  readonly nodes: NodeRequests;
}

export class ClientRequests {
  readonly #context: ManagerContext;
  readonly #host: RequestsHost;
  readonly #summaries = new Map<BlobHash, RunSummary>();
  /** Callbacks waiting for a blob. */
  readonly #readers = new Map<BlobHash, ((summary: RunSummary | null) => void)[]>();
  readonly submits: Submits;

  constructor(context: ManagerContext, host: RequestsHost) {
    this.#context = context;
    this.submits = new Submits(context);
    this.#host = host;
  }

  take(id: number, request: ClientRequest): void {
    switch (request.kind) {
      case "submit":
        if (this.#host.nodes.isDraining) this.#refuse(id, "retry", "this manager is draining");
        else this.submits.take(id, request);
        return;
      case "status":
        this.#withJob(id, request.job, (job) => this.#status(id, job));
        return;
      case "watch":
        this.#withJob(id, request.job, (job) => this.#watch(id, job, request));
        return;
      case "control":
        this.#withJob(id, request.job, (job) => this.#control(id, job, request));
        return;
      case "jobs": {
        // A stale list is still useful; one that was never complete would hide jobs.
        if (this.#context.isCatchingUp) {
          this.#answer(id, this.#context.behind());
          return;
        }
        const jobs = [...(this.#context.datacenter()?.jobs.values() ?? [])];
        const all = jobs.map((job) => ({ createdAt: job.createdAt, id: job.job, job }));
        const { more, page } = pageOfJobs(all, request.after);
        const views = page.map(({ job }) => this.#view(job));
        this.#answer(id, { kind: "jobs", jobs: views, more });
        return;
      }
      case "events":
        this.#withJob(id, request.job, (job) => this.#events(id, job, request.from));
        return;
      case "nodes":
        this.#answer(id, { kind: "nodes", nodes: this.#host.nodes.views() });
        return;
      case "drain":
        this.#host.nodes.drain(id, request.node);
        return;
      case "removeNode":
        this.#host.nodes.remove(id, request.node);
        return;
      case "datacenters":
        this.#refuse(id, "invalid", "only gates know of datacenters, and a manager was asked");
        return;
      default:
        assertNever(request);
    }
  }

  /** Caches a result for requests that follow soon. */
  #keep(hash: BlobHash, summary: RunSummary): void {
    this.#summaries.set(hash, summary);
    const [oldest] = this.#summaries.keys();
    if (this.#summaries.size > SUMMARIES_MAX && oldest !== undefined)
      this.#summaries.delete(oldest);
  }

  onBlobRead(hash: BlobHash, bytes: Uint8Array | null): void {
    const summary = bytes === null ? null : (decodeResult(bytes)?.summary ?? null);
    if (summary !== null) this.#keep(hash, summary);
    const readers = this.#readers.get(hash) ?? [];
    this.#readers.delete(hash);
    for (const done of readers) done(summary);
  }

  #answer(id: number, answer: ClientAnswer): void {
    this.#context.emit({ kind: "answer", id, answer });
  }

  #refuse(id: number, reason: RefusalReason, message: string): void {
    this.#answer(id, refusal(reason, message));
  }

  #withJob(id: number, name: string, then: (job: DatacenterJob) => void): void {
    const job = this.#context.datacenter()?.jobs.get(name);
    if (job === undefined) this.#answer(id, this.#context.noJob(name));
    else then(job);
  }

  #watch(id: number, job: DatacenterJob, { latencies, line, live }: Watch): void {
    const leader = this.#host.leaderOf(job.job);
    if (leader === null || (job.phase === "ended" && leader.summary === null)) {
      if (job.phase === "admitted") this.#sendOn(id, job);
      else if (job.summary === null) this.#progress(id, job, null);
      else
        this.#withSummary(id, job.summary, (summary) => {
          if (summary !== null) this.#progress(id, job, summary);
          else this.#refuse(id, "retry", "the managers that have its result cannot be reached");
        });
      return;
    }
    const isOver = job.phase === "ended";
    this.#answer(id, {
      kind: "progress",
      // Reports the end only once the datacenter has recorded it: until then some managers may lack the result.
      status: isOver ? job.status : stillUnderWay(leader.status),
      reason: isOver ? job.reason : null,
      live: live && !isOver ? leader.live(latencies ? "latencies" : "figures") : null,
      lines: leader.lines.from(line),
      nextLine: leader.lines.next,
      summary: isOver ? leader.summary : null,
    });
  }

  /** Passes null when no reachable manager has the blob. */
  #withSummary(id: number, hash: BlobHash, done: (summary: RunSummary | null) => void): void {
    const known = this.#summaries.get(hash);
    if (known !== undefined) {
      done(known);
      return;
    }
    const readers = this.#readers.get(hash) ?? [];
    if (readers.length >= READERS_MAX) {
      this.#refuse(id, "retry", "too many ask for this result");
      return;
    }
    this.#readers.set(hash, [...readers, done]);
    if (readers.length === 0) this.#context.emit({ kind: "readBlob", hash });
  }

  /** Progress of a job that waits or has finished. */
  #progress(id: number, job: DatacenterJob, summary: RunSummary | null): void {
    const { reason, status } = job;
    this.#answer(id, {
      ...{ kind: "progress", status, summary },
      reason: reason ?? this.#host.reasonOf(job.job),
      live: null,
      lines: [],
      nextLine: 0,
    });
  }

  #control(id: number, job: DatacenterJob, { by, control, wish }: Asked): void {
    const done = (proposed: Proposed): void => {
      if (proposed.kind === "committed" && proposed.reason === "STALE_FENCE") {
        this.#context.timeouts.count("fenceRejected", "stale_global_timeout");
        this.#context.log("warn", "timeout.staleFence", { job: job.job, by });
      }
      this.#answer(id, controlled(proposed));
    };
    if (job.phase === "ended") {
      this.#refuse(id, "invalid", `${job.job} has ended: ${job.status}`);
      return;
    }
    const leader = this.#host.leaderOf(job.job);
    if (leader !== null) {
      leader.control(control, { by, wish }, done);
      return;
    }
    if (job.phase === "admitted") {
      this.#sendOn(id, job);
      return;
    }
    if (control.kind !== "cancel" && !this.#host.leadsDatacenter()) {
      this.#refuse(id, "retry", "this manager may be behind: it does not lead its datacenter");
      return;
    }
    if (control.kind !== "cancel") {
      this.#refuse(id, "invalid", `${job.job} has not begun: it can only be cancelled`);
      return;
    }
    const over = { status: "CANCELLED", summary: null, onlyQueued: true } as const;
    const at = Math.floor(this.#context.wall);
    const entry = { kind: "end", job: job.job, reason: control.reason, ...over, at } as const;
    const data = encodeDatacenterEntry(entry);
    const { datacenterGroup } = this.#context;
    this.#context.proposeForClient(datacenterGroup, this.#context.newEventId(), data, done);
  }

  #sendOn(id: number, { job }: DatacenterJob): void {
    const primary = this.#context.runOf(job)?.primary ?? null;
    if (primary === null || primary === this.#context.options.self)
      this.#refuse(id, "retry", "nobody leads the job at the moment");
    else {
      const address = this.#context.options.addresses[primary] ?? null;
      const message = `${primary} leads ${job}`;
      this.#answer(id, { kind: "refused", reason: "notLeader", message, address });
    }
  }

  #status(id: number, job: DatacenterJob): void {
    const tell = (summary: RunSummary | null): void => {
      const live = this.#host.leaderOf(job.job)?.live("figures") ?? null;
      const figures = summary ?? live?.summary ?? null;
      const { lost = [], thresholds = [] } = figures ?? {};
      const view = this.#view(job);
      const datacenters = view.datacenters.map((one) => ({
        ...one,
        ...figuresOf(figures),
        ...(live === null ? {} : { ratePerSecond: live.ratePerSecond }),
      }));
      const run = this.#context.runOf(job.job);
      const workflows = run === null ? [] : workflowViews(run.state, job, summary);
      this.#answer(id, { kind: "job", job: { ...view, workflows, datacenters, thresholds, lost } });
    };
    if (job.summary === null) tell(null);
    else this.#withSummary(id, job.summary, tell);
  }

  #events(id: number, job: DatacenterJob, from: number): void {
    const run = this.#context.runOf(job.job);
    const { datacenter, self } = this.#context.options;
    const told = eventsOf(job, run?.state ?? null).map((event) => ({ ...event, datacenter }));
    const text = `${self} does not have the whole log of the job yet: ask again, or another manager`;
    const isWhole = hasWholeLog(job, run);
    const all = isWhole ? told : [...told, cutShort(told, { datacenter, text, who: self })];
    const events = all.slice(from, from + EVENTS_PAGE_MAX);
    this.#answer(id, { kind: "events", events, more: from + events.length < all.length });
  }

  /** Entry of a job list: without workflows and metrics. */
  #view(job: DatacenterJob): JobView {
    const { options, peers } = this.#context;
    const run = this.#context.runOf(job.job);
    const leader = this.#host.leaderOf(job.job);
    const folded = run === null ? job.status : foldedStatus(run.state);
    const status = job.phase === "admitted" ? (leader?.status ?? folded) : job.status;
    const reason = job.reason ?? this.#host.reasonOf(job.job);
    // A finished job has returned its cores; its log still records them.
    const grants = job.grants.length > 0 ? job.grants : (run?.state.grants ?? []);
    const cores = grants.reduce((sum, one) => sum + one.cores, 0);
    const workers = new Set(grants.map(({ worker }) => worker)).size;
    const here: JobDatacenterView = {
      ...{ name: options.datacenter, status, reason, job: job.job },
      ...{ managers: peers.size + 1, workers, cores, ...figuresOf(null), ...job.calls },
      asOfMs: 0,
    };
    return {
      ...{ id: job.job, name: job.name, status, reason, createdAt: job.createdAt, cores },
      leader: run?.primary ?? null,
      fence: leader?.view ?? run?.state.view ?? 0,
      ...{ workflows: [], datacenters: [here], thresholds: [], lost: [] },
    };
  }
}

function controlled(proposed: Proposed): ClientAnswer {
  if (proposed.kind === "notNow") return refusal("retry", proposed.message);
  if (proposed.kind === "refused") return refusal("invalid", proposed.message);
  if (proposed.outcome !== "rejected") return { kind: "controlled" };
  return refusal("retry", proposed.reason ?? "it was rejected");
}

function stillUnderWay(status: JobStatus): JobStatus {
  return ENDED_STATUSES.includes(status) ? "RUNNING" : status;
}
