/**
 * A cluster for programs: submit a file as `hyperscale submit` does, follow and control its job, and get its result.
 *
 *     const cluster = connect({ addresses: ["10.0.0.1:7700", "10.0.0.2:7700"], secret });
 *     const job = await cluster.submit("flow.ts", { duration: "1m", key: "nightly-2026-11-17" });
 *     for await (const { status, live } of job.progress()) console.log(status, live?.ratePerSecond);
 *     const { status, summary } = await job.completion();
 *
 * Gates and managers may come and go: requests are retried at another one, lines come once and in order, and a
 * submission with a key happens once.
 */

import { userInfo } from "node:os";
import type {
  Control,
  DatacenterView,
  JobEventView,
  JobStatus,
  JobView,
  NodeView,
} from "../core/cluster/messages.ts";
import type { LiveRun } from "../core/load/results/live.ts";
import type { RunSummary, WorkflowSummary } from "../core/load/results/model.ts";
import type { RunOptions } from "../runner/run-options.ts";
import { ClusterClient, ClusterError, hasEnded } from "./client.ts";
import { type Placement, routingOf } from "./routing.ts";
import { Turns } from "./turns.ts";

/** Poll interval of a job. */
const EVERY_MS = 500;
/** A job continues without an answering leader, as when a quorum is unavailable: it is polled for this long. */
const SILENT_MS_MAX = 600_000;
/** Files prepared at once, each by a process with a deadline: of a hundred few would finish in time. */
const PREPARED_AT_ONCE = 2;

export interface ConnectOptions {
  /** "10.0.0.1:7700" or "gate.example:7700": gates, or managers of a cluster without. One that answers is enough. */
  readonly addresses: readonly string[];
  /** A client's secret, as `client.key` has it. */
  readonly secret: string;
  /** Name recorded with changes of a job; the user of this machine by default. */
  readonly as?: string;
  readonly cluster?: string;
  readonly environment?: string;
}

/** Options of a run except those of this process, and the placement. */
export interface SubmitOptions
  extends Omit<RunOptions, "report" | "inspect" | "signal" | "command">,
    Placement {
  /** The same key is the same job, however often and through whichever gate it is submitted. */
  readonly key?: string;
  /** Tenant whose share of the cluster it uses. */
  readonly tenant?: string;
  /** Receives warnings about the file, such as data that are sent along. */
  readonly onWarning?: (line: string) => void;
}

export interface JobProgress {
  readonly status: JobStatus;
  /** Why it waits, failed or finished. */
  readonly reason: string | null;
  /** While it runs. */
  readonly live: LiveRun | null;
  /** Lines since the previous progress, from the run and from user code. */
  readonly lines: readonly string[];
}

export interface JobEnd {
  readonly status: JobStatus;
  readonly reason: string | null;
  /** As in summary.json; null without results. */
  readonly summary: RunSummary | null;
}

function nameOf(option: string): string {
  return option === "overrides" ? "what env, only, seed and the load say together" : option;
}

/** Connects in the background; the first request waits for it. */
export function connect({ addresses, as, ...rest }: ConnectOptions): Cluster {
  const client = ClusterClient.open({ managers: addresses, nameOf, ...rest });
  return new Cluster(client, as ?? userInfo().username);
}

export class Cluster {
  readonly #client: ClusterClient;
  readonly #as: string;
  readonly #preparing = new Turns(PREPARED_AT_ONCE);

  constructor(client: ClusterClient, as: string) {
    this.#client = client;
    this.#as = as;
  }

  /** Submits a file or URL. Mistakes in it are found here, before anything is sent. */
  async submit(target: string, options: SubmitOptions = {}): Promise<Job> {
    const { datacenterCount, datacenters, eachDatacenter, prefer, split, strict, ...others } =
      options;
    const { key, onWarning, tenant, ...run } = others;
    const placement = { datacenterCount, datacenters, eachDatacenter, prefer, split, strict };
    const routed = routingOf(placement, (option) => option);
    if (!routed.ok) throw new TypeError(routed.problem);
    // Loaded on first use: following jobs needs no compiler.
    const { prepareJob } = await import("../runner/submission.ts");
    const { files, submission } = await this.#preparing.take(() =>
      prepareJob(target, run, onWarning ?? (() => undefined)),
    );
    const owned = { ...submission, tenant: tenant ?? null };
    return this.job(await this.#client.submit(owned, files, key, routed.routing));
  }

  /** A job submitted before, by any client. */
  job(id: string): Job {
    return new Job(id, this.#client, this.#as);
  }

  /** In the order of their creation. */
  jobs(): Promise<readonly JobView[]> {
    return this.#client.jobs();
  }

  nodes(): Promise<readonly NodeView[]> {
    return this.#client.nodes();
  }

  datacenters(): Promise<readonly DatacenterView[]> {
    return this.#client.datacenters();
  }

  /** Disconnects; jobs continue. */
  close(): Promise<void> {
    return this.#client.close();
  }
}

export class Job {
  readonly id: string;
  readonly #client: ClusterClient;
  readonly #as: string;

  constructor(id: string, client: ClusterClient, as: string) {
    this.id = id;
    this.#client = client;
    this.#as = as;
  }

  status(): Promise<JobView> {
    return this.#client.status(this.id);
  }

  /** Events of the job, in order. */
  events(): Promise<readonly JobEventView[]> {
    return this.#client.events(this.id);
  }

  /** Yields its progress repeatedly until it has finished. */
  async *progress({ everyMs = EVERY_MS } = {}): AsyncGenerator<JobProgress, JobEnd> {
    let line = 0;
    for (;;) {
      const answer = await this.#ask(line, true);
      const { lines, live, nextLine, reason, status, summary } = answer;
      line = nextLine;
      yield { status, reason, live, lines };
      if (hasEnded(status)) return { status, reason, summary };
      await this.#client.pause(everyMs);
    }
  }

  /** Yields the result of each workflow as soon as it has finished, in that order. */
  async *results(): AsyncGenerator<WorkflowSummary> {
    const yielded = new Set<string>();
    for (let line = 0; ; ) {
      const { live, nextLine, status, summary } = await this.#ask(line, true);
      line = nextLine;
      for (const workflow of (summary ?? live?.summary)?.workflows ?? []) {
        const isOver = hasEnded(status) || isEnded(workflow);
        if (!isOver || yielded.has(workflow.name)) continue;
        yielded.add(workflow.name);
        yield workflow;
      }
      if (hasEnded(status)) return;
      await this.#client.pause(EVERY_MS);
    }
  }

  /** Waits for its end. */
  async completion(): Promise<JobEnd> {
    for (let line = 0; ; ) {
      const { nextLine, reason, status, summary } = await this.#ask(line, false);
      line = nextLine;
      if (hasEnded(status)) return { status, reason, summary };
      await this.#client.pause(EVERY_MS);
    }
  }

  cancel(reason = "cancelled by its client"): Promise<void> {
    return this.#control({ kind: "cancel", reason });
  }

  pause(): Promise<void> {
    return this.#control({ kind: "pause" });
  }

  resume(): Promise<void> {
    return this.#control({ kind: "resume" });
  }

  /** Scales the load relative to the plan: 1 is as planned. */
  scale(factor: number): Promise<void> {
    return this.#control({ kind: "scale", factor });
  }

  #control(control: Control): Promise<void> {
    return this.#client.control(this.id, control, this.#as);
  }

  async #ask(line: number, live: boolean): ReturnType<ClusterClient["progress"]> {
    const began = performance.now();
    for (;;) {
      try {
        return await this.#client.progress(this.id, line, live);
      } catch (error) {
        const isOpen = error instanceof ClusterError && error.isPassing && !this.#client.isClosed;
        if (!isOpen || performance.now() - began > SILENT_MS_MAX) throw error;
      }
    }
  }
}

function isEnded({ status }: WorkflowSummary): boolean {
  return status !== "waiting" && status !== "running";
}
