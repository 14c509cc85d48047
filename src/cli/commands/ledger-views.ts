/** Views of jobs, events and nodes for people. */

import { styleText } from "node:util";
import { clean } from "../../core/base/terminal-text.ts";
import { headedTable } from "../../core/base/text-table.ts";
import type { JsonObject } from "../../ledger/client.ts";

const STATUS_COLORS = {
  CREATED: "cyan",
  ACCEPTED: "blue",
  CANCELLING: "yellow",
  COMPLETED: "green",
  FAILED: "red",
  TIMED_OUT: "red",
  CANCELLED: "yellow",
  QUEUED: "cyan",
  DISPATCHED: "cyan",
  RUNNING: "blue",
  PAUSED: "yellow",
} as const;

function text(value: unknown): string {
  return value === null || value === undefined ? "-" : clean(String(value));
}

function list(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? (value as readonly JsonObject[]) : [];
}

function paint(status: string): string {
  const color = STATUS_COLORS[status as keyof typeof STATUS_COLORS];
  return process.stdout.isTTY && color !== undefined ? styleText(color, status) : status;
}

function pairs(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, value]) => `${name.padEnd(width)}  ${value}`).join("\n");
}

export function showPut(body: JsonObject, id: string): string {
  if (body["answer"] === "accepted") {
    const again = body["duplicate"] === true ? " (this key had made it before)" : "";
    return pairs([
      ["job", `${text(body["jobId"])}${again}`],
      ["key", id],
    ]);
  }
  if (body["answer"] === "passedOn") {
    return pairs([
      ["job", text(body["jobId"])],
      ["event", text(body["eventId"])],
      ["outcome", text(body["why"])],
    ]);
  }
  const { jobId, eventId, seq, outcome, reason, level, required, duplicate, view } = body;
  const why = reason === null || reason === undefined ? "" : ` (${text(reason)})`;
  const short = atLeast(level, required) ? "" : `; ${text(required)} was not reached yet`;
  return pairs([
    ["job", text(jobId)],
    ["event", `${text(eventId)}${duplicate === true ? " (committed before)" : ""}`],
    ["outcome", `${text(outcome)}${why}`],
    ["durable", `${text(level)}${short}`],
    ["place", seq === -1 ? "this node's own log" : `${text(seq)} in view ${text(view)}`],
  ]);
}

const LEVELS = ["NONE", "LOCAL", "REGIONAL", "GLOBAL"];

function atLeast(level: unknown, required: unknown): boolean {
  return LEVELS.indexOf(text(level)) >= LEVELS.indexOf(text(required));
}

export function showJob(body: JsonObject): string {
  const job = (body["job"] ?? {}) as JsonObject;
  const spec = clean(Buffer.from(text(job["spec"]), "base64").toString("utf8"));
  const accepted = list(job["accepted"]).map(
    (dc) => `${text(dc["dcId"])} (${text(dc["workerCount"])})`,
  );
  const end = job["end"] as JsonObject | null;
  const cancellation = job["cancellation"] as JsonObject | null;
  const members = (body["members"] ?? []) as readonly string[];
  const rows: [string, string][] = [
    ["job", text(job["jobId"])],
    ["status", paint(text(job["status"]))],
    ["datacenters", ((job["assignedDcs"] ?? []) as readonly string[]).map(text).join(", ")],
    ["accepted", accepted.length === 0 ? "-" : accepted.join(", ")],
  ];
  const run = (job["run"] ?? {}) as JsonObject;
  const started = run["started"] as JsonObject | null | undefined;
  if (started !== null && started !== undefined) {
    const at = new Date(Number(started["startAtMs"])).toISOString();
    const results = list(run["results"]).map(
      (one) => `${text(one["dcId"])} ${text(one["finalStatus"])}`,
    );
    rows.push(["started", `${at}, scaled to ${Number(run["permille"]) / 10} %`]);
    rows.push(["results", results.length === 0 ? "-" : results.join(", ")]);
  }
  if (cancellation !== null) {
    rows.push(["cancel", `${text(cancellation["reason"])} (${text(cancellation["requestor"])})`]);
  }
  if (end !== null) {
    rows.push([
      "end",
      Object.values(end)
        .filter((part) => part !== "")
        .map(text)
        .join(" "),
    ]);
  }
  rows.push(["spec", spec.length > 200 ? `${spec.slice(0, 200)}…` : spec]);
  rows.push(["place", `${text(job["appliedSeq"])}, fence ${text(job["fenceToken"])}`]);
  const group = `primary ${text(body["primary"])} in view ${text(body["view"])} of ${members.map(text).join(", ")}`;
  const live = `${text(body["servedBy"])}; ${group}`;
  rows.push(["served by", body["archived"] === true ? "the archive" : live]);
  return pairs(rows);
}

export function showHistory(body: JsonObject): string {
  const job = (body["job"] ?? {}) as JsonObject;
  const events = list(job["events"]);
  const rows = events.map((event) => [
    text(event["seq"]),
    text(event["at"]),
    text(event["kind"]),
    outcome(event),
    text(event["eventId"]),
  ]);
  const count = `${events.length} event${events.length === 1 ? "" : "s"}`;
  return [
    headedTable(["place", "time", "event", "outcome", "event id"], rows),
    "",
    `${text(job["jobId"])} is ${paint(text(job["status"]))}, ${count}`,
  ].join("\n");
}

export function showJobs(body: JsonObject): string {
  const jobs = list(body["jobs"]);
  const rows = jobs.map((job) => [
    text(job["jobId"]),
    paint(text(job["status"])),
    text(job["owner"]),
    text(job["view"]),
    text(job["seq"]),
    ((job["datacenters"] ?? []) as readonly string[]).map(text).join(" "),
  ]);
  const count = `${jobs.length} job${jobs.length === 1 ? "" : "s"}`;
  const more = body["more"] === true ? `; more with --after ${text(jobs.at(-1)?.["jobId"])}` : "";
  return [
    headedTable(["job", "status", "owner", "fence", "place", "datacenters"], rows),
    "",
    `${count}${more}`,
  ].join("\n");
}

export function showAudit(body: JsonObject): string {
  const events = list(body["events"]);
  const rows = events.map((event) => [
    text(event["at"]),
    text(event["jobId"]),
    text(event["seq"]),
    text(event["kind"]),
    outcome(event),
    event["archived"] === true ? "archive" : "live",
  ]);
  const more = body["truncated"] === true ? "; more match, narrow the time or raise --limit" : "";
  return [
    headedTable(["time", "job", "place", "event", "outcome", "kept in"], rows),
    "",
    `${events.length} events${more}`,
  ].join("\n");
}

function outcome(event: JsonObject): string {
  const reason = event["reason"];
  return reason === null || reason === undefined
    ? text(event["outcome"])
    : `${text(event["outcome"])}: ${text(reason)}`;
}

export function showStatus(body: JsonObject, groups: readonly JsonObject[]): string {
  const parts = [pairs(statusRows(body)), "", peerTable(list(body["peers"]))];
  if (groups.length > 0) parts.push("", groupTable(groups));
  return parts.join("\n");
}

function statusRows(body: JsonObject): [string, string][] {
  const { name, region, cluster, environment } = body;
  const { jobs, shards, leading } = (body["ledger"] ?? {}) as JsonObject;
  const { commits, requests, alarms } = (body["counts"] ?? {}) as JsonObject;
  const held = `jobs ${text(jobs)}, shards ${text(shards)}, leads ${text(leading)}`;
  const work = `${text(commits)} commits, ${text(requests)} requests, ${text(body["waiting"])} waiting`;
  return [
    ["node", `${text(name)} in ${text(region)}, cluster ${text(cluster)}/${text(environment)}`],
    ["ledger", text(body["nodes"])],
    ["groups", `${held}; ${text(body["archivedJobs"])} jobs archived`],
    ["work", `${work}, ${text(alarms)} alarms`],
    ["log", logLine((body["wal"] ?? {}) as JsonObject)],
    ["checkpoint", checkpointLine(list(body["checkpoints"]))],
    ["lease", `${text(body["leaseMs"])} ms`],
    ["encryption", text(body["encryption"])],
  ];
}

function logLine(wal: JsonObject): string {
  const { durableLsn, durableLag, queueFill, durableP99Ms, stalled } = wal;
  const fill = `${(Number(queueFill ?? 0) * 100).toFixed(1)} %`;
  const slowest = `${Number(durableP99Ms ?? 0).toFixed(1)} ms`;
  const problem = stalled === null || stalled === undefined ? "" : `; DISK: ${text(stalled)}`;
  const durable = `durable to LSN ${text(durableLsn)}, ${text(durableLag)} behind`;
  return `${durable}; queue ${fill}; durable within ${slowest} (p99)${problem}`;
}

function checkpointLine(checkpoints: readonly JsonObject[]): string {
  const [newest] = checkpoints;
  if (newest === undefined) return "none yet";
  const at = new Date(Number(newest["createdAt"])).toISOString();
  return `LSN ${text(newest["localLsn"])} at ${at}, ${checkpoints.length} kept`;
}

function peerTable(peers: readonly JsonObject[]): string {
  const rows = peers.map((peer) => [
    text(peer["name"]),
    text(peer["region"]),
    text(peer["address"]),
    peer["up"] === true ? "up" : "DOWN",
    peer["heard"] === true ? "yes" : "no",
    `${text(peer["queuedBytes"])} B`,
    text(peer["dropped"]),
    text(peer["problem"]),
  ]);
  return headedTable(
    ["peer", "region", "address", "link", "heard", "queued", "dropped", "problem"],
    rows,
  );
}

function groupTable(groups: readonly JsonObject[]): string {
  const rows = groups.map((group) => [
    text(group["group"]),
    text(group["status"]),
    text(group["view"]),
    text(group["primary"]),
    text(group["commit"]),
    ((group["members"] ?? []) as readonly string[]).map(text).join(" "),
  ]);
  return headedTable(["group", "status", "view", "primary", "commit", "replicas"], rows);
}

export function showReplaced(body: JsonObject): string {
  const failed = list(body["failed"]);
  const lines = failed.map((one) => `not moved: ${text(one["group"])}: ${text(one["why"])}`);
  return [`${text(body["replaced"])} groups moved, ${failed.length} not`, ...lines].join("\n");
}
