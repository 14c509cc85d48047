/** Google BigQuery by streaming inserts; creates the table if it does not exist. (REST v2: tabledata.insertAll) */

import { createHash } from "node:crypto";
import { chunks, definePush, httpTarget } from "../definition.ts";
import { framePoints, type PointObject } from "../encoders/point-json.ts";
import { RefusedError } from "../pipeline/delivery.ts";
import { type Ask, HttpTransport } from "../pipeline/http.ts";
import type { Payload } from "../pipeline/payload-queue.ts";
import { ReporterError } from "../settings.ts";
import { GOOGLE_KEY, GoogleTokens } from "./google-token.ts";

/** Google's recommendation for one request. */
const ROWS_MAX = 500;
const SCOPE = "https://www.googleapis.com/auth/bigquery";
const JSON_TYPE = { "content-type": "application/json" };

const COLUMNS = [
  { name: "at", type: "TIMESTAMP" },
  ...["kind", "scope", "figure", "type", "unit", "run_id", "workflow", "step"].map((name) => ({
    ...{ name, type: "STRING" },
  })),
  { name: "labels", type: "STRING" },
  {
    ...{ name: "values", type: "RECORD", mode: "REPEATED" },
    fields: [
      { name: "name", type: "STRING" },
      { name: "value", type: "FLOAT" },
    ],
  },
];

export const bigquery = definePush({
  name: "bigquery",
  about: "Google BigQuery: a row per point, its values as a repeated record",
  target: "project.dataset",
  settings: {
    table: {
      kind: "text",
      about: "its table, made if it is not there",
      default: "hyperscale_points",
    },
    key: GOOGLE_KEY,
    endpoint: {
      kind: "text",
      about: "another server that speaks like it",
      default: "https://bigquery.googleapis.com",
    },
  },
  evidence: "own stub",
  testedWith: "a stub that checks the signature of the key and the token",
  transport: ({ settings, target }) => {
    const [, project, dataset] = /^([\w:.-]+)\.(\w+)$/.exec(target) ?? [];
    if (project === undefined || dataset === undefined)
      throw new ReporterError("report bigquery: write bigquery=PROJECT.DATASET");
    const tables = httpTarget("bigquery", settings.endpoint);
    tables.pathname = `/bigquery/v2/projects/${project}/datasets/${dataset}/tables`;
    const tokens = new GoogleTokens("bigquery", settings.key, SCOPE);
    let isThere = false;
    const makeTable = async (ask: Ask, headers: Readonly<Record<string, string>>) => {
      const tableReference = { projectId: project, datasetId: dataset, tableId: settings.table };
      const body = Buffer.from(JSON.stringify({ tableReference, schema: { fields: COLUMNS } }));
      await ask({ method: "POST", url: tables, headers, body }).catch(unlessThere);
      isThere = true;
    };
    const url = new URL(tables);
    url.pathname += `/${encodeURIComponent(settings.table)}/insertAll`;
    const request = async ({ body }: Payload, ask: Ask) => {
      const headers = { ...JSON_TYPE, ...(await tokens.headers(ask, Date.now())) };
      if (!isThere) await makeTable(ask, headers);
      return { method: "POST", url, headers, body };
    };
    return new HttpTransport({
      ...{ gzip: true, request },
      // BigQuery answers 200 even when it rejected rows.
      refusal: (answer) => (answer.includes('"insertErrors"') ? answer : null),
    });
  },
  encode: (frame) =>
    chunks(framePoints(frame), ROWS_MAX).map((points) => ({
      body: Buffer.from(JSON.stringify({ rows: points.map(bigqueryRow) })),
      points: points.length,
    })),
});

/** 409: the table exists already. */
function unlessThere(error: unknown): void {
  if (!(error instanceof RefusedError && error.message.startsWith("it answered 409"))) throw error;
}

/** `insertId` lets BigQuery deduplicate rows that are sent again. */
function bigqueryRow(point: PointObject): unknown {
  const { labels, values, ...rest } = point;
  const { run_id, step, workflow } = labels;
  const insertId = createHash("sha256").update(JSON.stringify(point)).digest("hex");
  const json = {
    ...{ ...rest, run_id, workflow, step, labels: JSON.stringify(labels) },
    values: Object.entries(values).map(([name, value]) => ({ name, value })),
  };
  return { insertId, json };
}
