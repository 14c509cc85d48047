/** Prometheus: remote write with native histograms, and the pushgateway. */

import { definePush, httpTarget } from "../definition.ts";
import { prometheusText } from "../encoders/prometheus-text.ts";
import { writeRequests } from "../encoders/remote-write.ts";
import { snappyLiterals } from "../encoders/snappy.ts";
import { HttpTransport } from "../pipeline/http.ts";

/** Prometheus's own limit for one request. */
const SERIES_PER_REQUEST_MAX = 2_000;

/** Credentials for writing: a user and a password, or a token. */
const CREDENTIALS = {
  user: { kind: "text", about: "the user of basic authentication", optional: true },
  password: { kind: "secret", about: "the user's password", optional: true },
  token: { kind: "secret", about: "a bearer token instead", optional: true },
} as const;

function authorizationOf({
  password,
  token,
  user,
}: {
  readonly user: string | undefined;
  readonly password: string | undefined;
  readonly token: string | undefined;
}): Readonly<Record<string, string>> {
  if (token !== undefined) return { authorization: `Bearer ${token}` };
  if (user === undefined) return {};
  const basic = Buffer.from(`${user}:${password ?? ""}`).toString("base64");
  return { authorization: `Basic ${basic}` };
}

export const prometheus = definePush({
  name: "prometheus",
  about: "Prometheus remote write: Prometheus, Mimir, Thanos, VictoriaMetrics, Grafana Cloud",
  target: "http://127.0.0.1:9090/api/v1/write",
  settings: {
    ...CREDENTIALS,
    tenant: { kind: "text", about: "X-Scope-OrgID of Mimir", optional: true },
    histograms: {
      kind: "choice",
      about: "latencies as native histograms, or as quantiles for servers that have none",
      choices: ["native", "quantiles"],
      default: "native",
    },
  },
  evidence: "real server",
  testedWith: "prometheus 2.42 with native histograms; VictoriaMetrics 1.79 with quantiles",
  transport: ({ settings, target }) => {
    const url = httpTarget("prometheus", target, "/api/v1/write");
    const { tenant } = settings;
    const headers = {
      "content-type": "application/x-protobuf",
      "content-encoding": "snappy",
      "x-prometheus-remote-write-version": "0.1.0",
      ...authorizationOf(settings),
      ...(tenant === undefined ? {} : { "x-scope-orgid": tenant }),
    };
    const request = ({ body }: { readonly body: Uint8Array }) => ({
      ...{ method: "POST", url, headers, body },
    });
    return new HttpTransport({ gzip: false, request });
  },
  encode: (frame, { histograms }) =>
    writeRequests(frame, histograms === "native", SERIES_PER_REQUEST_MAX).map(
      ({ body, series }) => ({ body: snappyLiterals(body), points: series }),
    ),
});

export const pushgateway = definePush({
  name: "pushgateway",
  about: "Prometheus pushgateway: the last figures of a run, for a scrape",
  target: "http://127.0.0.1:9091",
  settings: {
    ...CREDENTIALS,
    job: { kind: "text", about: "the job that the group is called by", default: "hyperscale" },
  },
  evidence: "real server",
  testedWith: "prometheus-pushgateway 1.5",
  transport: ({ settings, target }) => {
    const url = httpTarget("pushgateway", target);
    url.pathname = `${url.pathname.replace(/\/$/, "")}/metrics/job/${encodeURIComponent(settings.job)}`;
    const headers = { "content-type": "text/plain; version=0.0.4", ...authorizationOf(settings) };
    return new HttpTransport({
      gzip: false,
      // POST keeps other metrics of the group: intervals and the summary coexist.
      request: ({ body }) => ({ method: "POST", url, headers, body }),
    });
  },
  encode: (frame) => [{ body: Buffer.from(prometheusText([frame])), points: frame.points.length }],
});
