/** A worker's control interface: whether it is well, and its numbers. */

import { errorText } from "../../core/base/error-text.ts";
import type { Background } from "../../host/background.ts";
import { type Metric, metricFamily } from "../../host/control/prometheus.ts";
import { type ControlLimits, ControlServer, json, readiness } from "../../host/control/server.ts";
import type { Log } from "../../host/ports/log.ts";
import { keepTokenOf } from "../../ledger/config.ts";
import type { WorkerHost, WorkerStatus } from "./worker-host.ts";

const LIMITS: ControlLimits = {
  bodyBytesMax: 65_536,
  connectionsMax: 64,
  connectionsPerAddressMax: 32,
  streamsMax: 0,
  requestMsMax: 10_000,
  keepAliveMs: 5_000,
};

interface Around {
  readonly log: Log;
  readonly background: Background;
}

/** Null where the configuration names no address. */
export async function serveWorker(
  host: WorkerHost,
  { background, log }: Around,
): Promise<ControlServer | null> {
  const { api } = host.config;
  if (api === null) return null;
  keepTokenOf(host.config.dataDir, api);
  return ControlServer.listen(api, {
    log,
    routes: { "GET /v1/status": () => json(host.status()) },
    limits: LIMITS,
    alive: () => ({ ok: true, ready: host.ready }),
    ready: () => readiness(host.ready, host.isDraining),
    metrics: () => workerMetrics(host.status(), host.rights.user !== null),
    work: () => background.list(),
    onFailure: (route, error) =>
      log.event("error", "request.failed", { route, problem: errorText(error) }),
  });
}

const { gauge, labelled, levels } = metricFamily("hyperscale_worker_");

function workerMetrics(status: WorkerStatus, isolated: boolean): readonly Metric[] {
  return [
    gauge("cores", "Cores that jobs may use", status.cores),
    gauge("used_processes", "Executor processes that jobs have", status.usedProcesses),
    gauge("job_code_isolated", "1 when code of jobs runs as another user", isolated ? 1 : 0),
    gauge("warm_processes", "Executor processes that wait for a job", status.warmProcesses),
    gauge("jobs", "Jobs with something here", status.jobs.length),
    gauge("draining", "1 while no new cores are taken", status.draining ? 1 : 0),
    gauge("cache_bytes", "Files of jobs that are kept, in bytes", status.cacheBytes),
    gauge("figures_delay_milliseconds", "Asked for by managers", status.figuresDelayMs),
    ...levels("degradation", status.degradation),
    gauge("queued", "Requests, cores to open and news that wait", status.queued),
    labelled("gauge", "manager_up", {
      help: "1 while the connection to a manager stands",
      label: "manager",
      values: status.managers.map(({ name, up }) => [name, up ? 1 : 0]),
    }),
  ];
}
