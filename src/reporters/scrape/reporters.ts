/** Scrape endpoint: `GET /metrics` answers with the latest metrics until the run has finished. */

import { listenProblem } from "../../host/control/guard.ts";
import type { Metric } from "../../host/control/prometheus.ts";
import { ControlServer, type ControlService } from "../../host/control/server.ts";
import { defineReporter, type ReporterDefinition } from "../definition.ts";
import { prometheusMetrics } from "../encoders/prometheus-text.ts";
import type { Frame } from "../reporter.ts";
import { ReporterError } from "../settings.ts";

const LIMITS: ControlService["limits"] = {
  bodyBytesMax: 1_024,
  connectionsMax: 32,
  connectionsPerAddressMax: 32,
  streamsMax: 0,
  requestMsMax: 5_000,
  keepAliveMs: 30_000,
};

const metrics = defineReporter(
  {
    name: "metrics",
    about: "Prometheus scrapes the run itself; --metrics HOST:PORT says the same",
    target: "127.0.0.1:9464",
    settings: {
      token: {
        kind: "secret",
        about: "the bearer token of scrapes; needed where others can reach the address",
        optional: true,
      },
    },
    evidence: "own stub",
    testedWith: "a running test that a client of ours scrapes",
  },
  ({ settings: { token }, target }) => {
    const [, host = "", port] = /^(?:(.+):)?(\d{1,5})$/.exec(target) ?? [];
    if (port === undefined) throw new ReporterError("report metrics: write metrics=HOST:PORT");
    if (host !== "" && listenProblem(host, token ?? null) !== null)
      throw new ReporterError(
        `report metrics: others can reach ${host}, so scrapes need a token: ` +
          `--report metrics=${target},token=env:SCRAPE_TOKEN`,
      );
    let frame: Frame | undefined;
    let server: ControlServer | undefined;
    let sent = 0;
    const scraped = (): readonly Metric[] => {
      sent += frame?.points.length ?? 0;
      return frame === undefined ? [] : prometheusMetrics([frame]);
    };
    return {
      everyMs: 1_000,
      start: async () => {
        const address = { host: host === "" ? "127.0.0.1" : host, port: Number(port) };
        server = await ControlServer.listen({ ...address, token: token ?? null }, service(scraped));
      },
      interval: (next) => {
        frame = next;
      },
      finish: async () => {},
      close: async () => server?.close(),
      counts: () => ({ sent, dropped: 0, problem: null }),
    };
  },
);

function service(scraped: () => readonly Metric[]): ControlService {
  return {
    routes: {},
    limits: LIMITS,
    alive: () => ({ alive: true }),
    ready: () => ({ ready: true }),
    work: () => [],
    metrics: scraped,
    onFailure: () => {},
  };
}

export const definitions: readonly ReporterDefinition[] = [metrics];
