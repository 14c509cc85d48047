/** Client requests to a gate: any gate accepts jobs and controls, and the leader of a job reports its progress. */

import { assertNever } from "../../base/assert.ts";
import { decodeUtf8, encodeUtf8 } from "../../base/bytes.ts";
import { hexOf } from "../../base/hex.ts";
import { sha256 } from "../../base/sha256.ts";
import type { LedgerAnswer } from "../../ledger/node/messages.ts";
import type { ClusterSummary } from "../../load/results/model.ts";
import { endedWorkflows } from "../ended-workflows.ts";
import { SUBMISSION_BYTES_MAX } from "../manager/datacenter-state.ts";
import { tenantOf } from "../manager/served-tenants.ts";
import { encodeSubmission, routingProblem, submissionProblem } from "../manager/submission.ts";
import { FULL_RETRY_MS, NO_QUOTAS, queueProblem } from "../manager/tenants.ts";
import {
  type BlobHash,
  type ClientAnswer,
  type ClientRequest,
  type Control,
  EVENTS_PAGE_MAX,
  type JobDatacenterView,
  type JobView,
  type Progress,
  refusal,
  type Submission,
  type Submit,
} from "../messages.ts";
import { cutShort, pageOfJobs } from "../pages.ts";
import type { Appended, EventBody, GateContext } from "./context.ts";
import { ledgerEvents } from "./job-events.ts";
import type { JobLeader } from "./job-leader.ts";
import { splitProblem } from "./job-parts.ts";
import { jobView, workflowsOf } from "./job-view.ts";
import { askAll, NodeRequests } from "./node-requests.ts";
import { NOTHING_LEFT, type Result, Results } from "./results.ts";
import { countOf, decodeSpec, encodeSpec } from "./spec.ts";
import { createdAtOf, hasJobEnded, reasonOf, statusOf, THRESHOLDS } from "./status.ts";
import type { JobGroup, ManagerAnswer } from "./types.ts";
import { upload } from "./upload.ts";

const KEY_CHARACTERS_MAX = 128;
const PERMILLE_MAX = 100_000;

interface RequestsHost {
  leaderOf(job: string): JobLeader | null;
  /** Tenants of the queued jobs that this gate leads. */
  waiting(): readonly string[];
}

export class ClientRequests {
  readonly #context: GateContext;
  readonly #host: RequestsHost;
  readonly #results: Results;
  readonly #nodes: NodeRequests;
  /** Uploads in progress and their waiters; bounded by the admission of submissions. */
  readonly #bringing = new Map<string, ((problem: string | null) => void)[]>();

  constructor(context: GateContext, host: RequestsHost) {
    this.#context = context;
    this.#host = host;
    this.#results = new Results(context);
    this.#nodes = new NodeRequests(context);
  }

  take(id: number, request: ClientRequest): void {
    const answer = (value: ClientAnswer): void =>
      this.#context.emit({ kind: "answer", id, answer: value });
    switch (request.kind) {
      case "submit":
        if (this.#context.isDraining) {
          const address = this.#context.gates.elsewhere();
          answer({ ...refusal("retry", "this gate is draining"), address });
        } else this.#submit(request, answer);
        return;
      case "status":
        this.#withJob(request.job, answer, (group) => this.#status(group, answer));
        return;
      case "watch":
        this.#withJob(request.job, answer, (group) => this.#watch(group, request, answer));
        return;
      case "control":
        this.#withJob(request.job, answer, () => this.#control(request, answer));
        return;
      case "jobs": {
        const all = [...this.#context.lookup.jobs()].map((group) => {
          const { state } = group;
          return { createdAt: createdAtOf(state), id: state.jobId, group };
        });
        const { more, page } = pageOfJobs(all, request.after);
        answer({ kind: "jobs", jobs: page.map(({ group }) => this.#view(group)), more });
        return;
      }
      case "events":
        this.#withJob(request.job, answer, (group) => this.#events(group, request.from, answer));
        return;
      case "nodes":
        this.#nodes.views((nodes) => answer({ kind: "nodes", nodes }));
        return;
      case "drain":
        this.#nodes.drain(request.node, answer);
        return;
      case "removeNode":
        this.#nodes.remove(request.node, answer);
        return;
      case "datacenters":
        answer({ kind: "datacenters", datacenters: this.#context.datacenters.views() });
        return;
      default:
        assertNever(request);
    }
  }

  #withJob(
    job: string,
    answer: (answer: ClientAnswer) => void,
    then: (group: JobGroup) => void,
  ): void {
    const group = this.#context.lookup.job(job);
    if (group === null) answer(refusal("unknownJob", `there is no job ${job}`));
    else then(group);
  }

  #submit({ key, routing, submission }: Submit, answer: (answer: ClientAnswer) => void): void {
    const { blobs, datacenters } = this.#context;
    const problem =
      keyProblem(key) ??
      submissionProblem(submission) ??
      routingProblem(routing, datacenters.names) ??
      splitProblem(submission, routing, countOf(routing)) ??
      sizeProblem(encodeSubmission(submission).length);
    if (problem !== null) {
      answer(refusal("invalid", problem));
      return;
    }
    const hashes = [...new Set(submission.files.map(({ hash }) => hash))];
    const missing = hashes.filter((hash) => !blobs.has(hash));
    if (missing.length > 0) {
      answer({ kind: "missing", hashes: missing });
      return;
    }
    const ownKey = ledgerKey(key);
    const full = queueProblem(NO_QUOTAS, this.#host.waiting(), tenantOf(submission));
    // A repeated submission of a queued job takes no further space.
    if (full !== null && !this.#context.lookup.knows(ownKey)) {
      answer({ ...refusal("retry", full), retryAfterMs: FULL_RETRY_MS });
      return;
    }
    const assignedDcs = routing.datacenters.length > 0 ? routing.datacenters : datacenters.names;
    const spec = encodeSpec({ submission, routing });
    const request = { kind: "submit", key: ownKey, spec, assignedDcs } as const;
    this.#bring(hashes, assignedDcs, (brought) => {
      if (brought) this.#context.request(request, (said) => answer(submitted(said)));
      else answer(refusal("retry", "no datacenter takes its files at the moment"));
    });
  }

  /**
   * Uploads the files before the job is accepted, to a quorum of managers in every datacenter where it may run: any
   * gate may lead the job. A datacenter that is unreachable now gets them later from the leader, if that has them.
   */
  #bring(
    hashes: readonly BlobHash[],
    names: readonly string[],
    done: (brought: boolean) => void,
  ): void {
    const { calls } = this.#context;
    const reached = names.flatMap((datacenter) => {
      const manager = calls.managerIn(datacenter);
      return manager === null ? [] : [{ datacenter, manager }];
    });
    let open = reached.length;
    let brought = false;
    if (open === 0) done(false);
    for (const to of reached)
      this.#upload(to, hashes, (problem) => {
        brought ||= problem === null;
        if (--open === 0) done(brought);
      });
  }

  /** Shares one upload between concurrent jobs with the same files. */
  #upload(
    to: { readonly datacenter: string; readonly manager: string },
    hashes: readonly BlobHash[],
    done: (problem: string | null) => void,
  ): void {
    const key = [to.datacenter, to.manager, ...hashes].join("/");
    const waiting = this.#bringing.get(key);
    if (waiting !== undefined) {
      waiting.push(done);
      return;
    }
    const all = [done];
    this.#bringing.set(key, all);
    upload(this.#context, to, hashes, (problem) => {
      this.#bringing.delete(key);
      for (const one of all) one(problem);
    });
  }

  #watch(
    { primary, state }: JobGroup,
    { latencies, line, live }: Extract<ClientRequest, { kind: "watch" }>,
    answer: (answer: ClientAnswer) => void,
  ): void {
    const leader = this.#host.leaderOf(state.jobId);
    const lines = leader?.lines.from(line) ?? [];
    const shared = { kind: "progress", lines, nextLine: leader?.lines.next ?? 0 } as const;
    if (hasJobEnded(state)) {
      const end = { status: statusOf(state), reason: reasonOf(state), live: null };
      this.#results.find(state, (found) =>
        answer(
          found.kind === "unreachable"
            ? refusal("retry", "its result cannot be reached at the moment")
            : { ...shared, ...end, summary: found.summary },
        ),
      );
      return;
    }
    if (leader === null) {
      answer(this.#sendOn(primary));
      return;
    }
    if (live || latencies) leader.markWatched(latencies);
    const { reason, status } = leader;
    const progress: Progress = { ...shared, status, reason, live: leader.live(), summary: null };
    answer(progress);
  }

  #sendOn(primary: string | null): ClientAnswer {
    if (primary === null || primary === this.#context.options.self)
      return refusal("retry", "nobody leads the job at the moment");
    const address = this.#context.options.addresses[primary] ?? null;
    return { ...refusal("notLeader", `${primary} leads the job`), address };
  }

  /** Commits a control before it is answered; the leading gate carries it out. */
  #control(
    { by, control, job, wish }: Extract<ClientRequest, { kind: "control" }>,
    answer: (answer: ClientAnswer) => void,
  ): void {
    const body = eventOf(control, by === THRESHOLDS ? `client ${by}` : by.slice(0, 80));
    if (body === null) {
      answer(refusal("invalid", `${control.kind} is no order for a gate`));
      return;
    }
    const done = (appended: Appended): void => answer(this.#controlled(job, appended));
    this.#context.append(job, body, { condition: null, wish }, done);
  }

  #controlled(job: string, appended: Appended): ClientAnswer {
    if (appended.kind !== "committed" || appended.outcome !== "alreadyTerminal")
      return controlled(job, appended);
    // The log of a partially finished job has it completed; this gate may not have applied it yet.
    const state = this.#context.lookup.job(job)?.state ?? null;
    const isKnown = state !== null && hasJobEnded(state);
    return refusal("invalid", `${job} has ended: ${isKnown ? statusOf(state) : appended.reason}`);
  }

  #status(group: JobGroup, answer: (answer: ClientAnswer) => void): void {
    const { state } = group;
    const leader = this.#host.leaderOf(state.jobId);
    const isOver = hasJobEnded(state);
    if (leader === null && !isOver) {
      answer(this.#sendOn(group.primary));
      return;
    }
    leader?.markWatched(false);
    const view = this.#view(group);
    this.#places(group, leader, ({ places, summary }) =>
      askAll(
        this.#context,
        places.map(({ datacenter, job }) => ({ datacenter, request: { kind: "status", job } })),
        (answers) => {
          const known = answers.flatMap((one) => (one?.kind === "job" ? [one.job] : []));
          const { lost = [], thresholds = [] } = summary ?? leader?.live()?.summary ?? {};
          const workflows = isOver
            ? endedWorkflows(manifestsOf(group), workflowsOf(known), summary)
            : workflowsOf(known);
          const datacenters = view.datacenters.map((one) => ({
            ...one,
            ...summary?.cluster?.datacenters
              .map(figuresOfResult)
              .find(({ name }) => name === one.name),
          }));
          answer({ kind: "job", job: { ...view, workflows, datacenters, thresholds, lost } });
        },
      ),
    );
  }

  /** Events of the gates and the datacenters, by time. */
  #events(group: JobGroup, from: number, answer: (answer: ClientAnswer) => void): void {
    const { state } = group;
    const leader = this.#host.leaderOf(state.jobId);
    if (leader === null && !hasJobEnded(state)) {
      answer(this.#sendOn(group.primary));
      return;
    }
    this.#places(group, leader, ({ places }) =>
      askAll(
        this.#context,
        places.map(({ datacenter, job }) => ({
          datacenter,
          request: { kind: "events", job, from: 0 },
        })),
        (answers) => {
          const there = answers.flatMap((one) => (one?.kind === "events" ? one.events : []));
          const known = [...ledgerEvents(state), ...there].sort((one, other) => one.at - other.at);
          const missing = answers.flatMap((one, at) =>
            this.#missing(one ?? null, places[at]?.datacenter ?? "").map((what) =>
              cutShort(known, what),
            ),
          );
          const all = [...known, ...missing];
          const events = all.slice(from, from + EVENTS_PAGE_MAX);
          answer({ kind: "events", events, more: from + events.length < all.length });
        },
      ),
    );
  }

  /** Notes about events that a datacenter did not return. */
  #missing(
    answer: ManagerAnswer | null,
    datacenter: string,
  ): readonly Parameters<typeof cutShort>[1][] {
    const who = this.#context.options.self;
    if (answer?.kind !== "events") {
      const why = answer?.kind === "refused" ? answer.message : "it cannot be reached";
      return [{ datacenter, who, text: `${datacenter} did not tell its events: ${why}` }];
    }
    const count = answer.events.length;
    const text = `only the first ${count} events of ${datacenter}: ask one of its managers for all`;
    return answer.more ? [{ datacenter, who, text }] : [];
  }

  /** Datacenters of a job: known to its leader, and for a finished job from its result. */
  #places({ state }: JobGroup, leader: JobLeader | null, done: (found: Result) => void): void {
    const led = (leader?.branches ?? []).filter(({ job }) => job !== "");
    if (!hasJobEnded(state)) done({ places: led, summary: null });
    else
      this.#results.find(state, (found) => {
        const { places, summary } = found.kind === "found" ? found : NOTHING_LEFT;
        done({ places: led.length > 0 ? led : places, summary });
      });
  }

  #view(group: JobGroup): JobView {
    const { state } = group;
    return jobView(group, decodeSpec(state.spec), this.#host.leaderOf(state.jobId), this.#context);
  }
}

function manifestsOf({ state }: JobGroup): Submission["manifests"] {
  return decodeSpec(state.spec)?.submission.manifests ?? [];
}

function figuresOfResult({
  failed,
  name,
  ratePerSecond,
  requests,
}: ClusterSummary["datacenters"][number]): Pick<
  JobDatacenterView,
  "name" | "requests" | "failed" | "ratePerSecond"
> {
  return { name, requests, failed, ratePerSecond };
}

function keyProblem({ length }: string): string | null {
  if (length > 0 && length <= KEY_CHARACTERS_MAX) return null;
  return `an idempotency key has 1 to ${KEY_CHARACTERS_MAX} characters`;
}

function sizeProblem(bytes: number): string | null {
  if (bytes <= SUBMISSION_BYTES_MAX) return null;
  return `the job takes ${bytes} bytes without its files; at most ${SUBMISSION_BYTES_MAX} are allowed`;
}

/** Clients choose any text; ledger keys consist of a client, a number and a nonce. */
function ledgerKey(key: string): string {
  const digest = hexOf(sha256(encodeUtf8(key)));
  return `${digest}:0:${digest.slice(0, 16)}`;
}

function submitted(said: LedgerAnswer): ClientAnswer {
  if (said.kind === "committed") return { kind: "accepted", job: said.jobId, duplicate: false };
  if (said.kind === "refused") return refusal("invalid", said.message);
  if (said.kind !== "submitted") return refusal("retry", `the ledger answered with ${said.kind}`);
  const { answer } = said;
  switch (answer.kind) {
    case "accepted":
      return { kind: "accepted", job: answer.jobId, duplicate: answer.duplicate };
    case "rejected":
      return refusal("invalid", decodeUtf8(answer.result));
    case "keyReused":
      return refusal("keyReused", "this idempotency key came with another submission");
    case "retry":
      return refusal("retry", answer.why);
    default:
      return assertNever(answer);
  }
}

function eventOf(control: Control, requestor: string): EventBody | null {
  switch (control.kind) {
    case "cancel":
      return { kind: "JobCancellationRequested", reason: control.reason.slice(0, 300), requestor };
    case "pause":
      return { kind: "JobPaused", requestor };
    case "resume":
      return { kind: "JobResumed", requestor };
    case "scale": {
      const permille = Math.round(control.factor * 1_000);
      return permille >= 1 && permille <= PERMILLE_MAX
        ? { kind: "JobScaled", permille, requestor }
        : null;
    }
    case "start":
    case "begin":
    case "over":
    case "timeOut":
      return null;
    default:
      return assertNever(control);
  }
}

function controlled(job: string, appended: Appended): ClientAnswer {
  if (appended.kind === "refused") return refusal("invalid", appended.message);
  if (appended.kind === "conflict") return refusal("retry", "the job has another leader");
  if (appended.reason === "NOT_RUNNING")
    return refusal("invalid", `${job} does not run: it can only be cancelled`);
  return appended.outcome === "rejected"
    ? refusal("invalid", `${job}: ${appended.reason ?? "rejected"}`)
    : { kind: "controlled" };
}
