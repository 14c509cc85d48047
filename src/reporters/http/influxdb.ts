/** InfluxDB over HTTP: version 1 with a database, version 2 and 3 with a bucket. */

import { chunks, definePush, httpTarget } from "../definition.ts";
import { influxLines } from "../encoders/influx-line.ts";
import { HttpTransport } from "../pipeline/http.ts";

/** InfluxData's recommendation for one request. */
const LINES_MAX = 5_000;

export const influxdb = definePush({
  name: "influxdb",
  about: "InfluxDB 1.x (database) or 2.x and 3.x (bucket), and what takes its line protocol",
  target: "http://127.0.0.1:8086",
  settings: {
    database: { kind: "text", about: "version 1: the database", optional: true },
    user: { kind: "text", about: "version 1: the user", optional: true },
    password: { kind: "secret", about: "version 1: the user's password", optional: true },
    bucket: { kind: "text", about: "version 2 and 3: the bucket", optional: true },
    org: { kind: "text", about: "version 2: the organisation", optional: true },
    token: { kind: "secret", about: "version 2 and 3: the API token", optional: true },
    prefix: { kind: "text", about: "what measurements begin with", default: "hyperscale" },
  },
  evidence: "real server",
  testedWith: "influxdb 1.6 and VictoriaMetrics 1.79; version 2's token and bucket by our stub",
  joins: true,
  transport: ({ settings, target }) => {
    const { bucket, database, org, password, token, user } = settings;
    const url = httpTarget("influxdb", target, bucket === undefined ? "/write" : "/api/v2/write");
    const query = bucket === undefined ? { db: database ?? "hyperscale" } : { bucket, org };
    for (const [name, value] of Object.entries({ ...query, precision: "ms" }))
      if (value !== undefined) url.searchParams.set(name, value);
    const basic =
      user === undefined
        ? undefined
        : `Basic ${Buffer.from(`${user}:${password ?? ""}`).toString("base64")}`;
    const authorization = token === undefined ? basic : `Token ${token}`;
    return new HttpTransport({
      gzip: true,
      request: ({ body }) => ({
        ...{ method: "POST", url, body },
        headers: {
          "content-type": "text/plain; charset=utf-8",
          ...(authorization === undefined ? {} : { authorization }),
        },
      }),
    });
  },
  encode: (frame, { prefix }) =>
    chunks(influxLines(frame, prefix), LINES_MAX).map((lines) => ({
      body: Buffer.from(lines.map(({ atMs, text }) => `${text} ${atMs}\n`).join("")),
      points: lines.reduce((sum, { points }) => sum + points, 0),
    })),
});
