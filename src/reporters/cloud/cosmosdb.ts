/** Azure Cosmos DB for NoSQL: points as documents of their run. (REST: create a document) */

import { createHmac } from "node:crypto";
import { chunks, definePush, httpTarget } from "../definition.ts";
import { framePoints } from "../encoders/point-json.ts";
import { HttpTransport } from "../pipeline/http.ts";
import type { Payload } from "../pipeline/payload-queue.ts";

/** Points per document, which is limited to 2 MB; the price of a request depends on its size. */
const DOCUMENT_POINTS_MAX = 100;

export const cosmosdb = definePush({
  name: "cosmosdb",
  about: "Azure Cosmos DB for NoSQL: documents with the points of a frame, by run",
  target: "https://account.documents.azure.com",
  settings: {
    key: { kind: "secret", about: "the account's key", default: "env:COSMOS_KEY" },
    database: { kind: "text", about: "the database" },
    container: {
      kind: "text",
      about: "its container, with the partition key /run_id",
      default: "hyperscale",
    },
  },
  evidence: "own stub",
  testedWith: "the published example of a signature, and a stub that checks signatures",
  transport: ({ settings: { container, database, key }, target }) => {
    const place = `dbs/${database}/colls/${container}`;
    const url = httpTarget("cosmosdb", target, `/${place}/docs`);
    const request = ({ body, to = "" }: Payload) => {
      const date = new Date().toUTCString();
      const headers = {
        "content-type": "application/json",
        "x-ms-date": date,
        "x-ms-version": "2018-12-31",
        "x-ms-documentdb-partitionkey": JSON.stringify([to]),
        // A document that is sent again replaces the first.
        "x-ms-documentdb-is-upsert": "true",
        authorization: cosmosSignature({ verb: "post", type: "docs", place, date, key }),
      };
      return { method: "POST", url, headers, body };
    };
    return new HttpTransport({ gzip: false, request });
  },
  encode: (frame) => {
    const run = frame.labels["run_id"] ?? frame.labels["run"] ?? "run";
    return chunks(framePoints(frame), DOCUMENT_POINTS_MAX).map((points, number) => ({
      body: Buffer.from(
        JSON.stringify({
          id: `${run}-${frame.kind}-${frame.atMs}-${number}`.replace(/[/\\?#]/g, "_"),
          ...{ run_id: run, kind: frame.kind, at: new Date(frame.atMs).toISOString(), points },
        }),
      ),
      ...{ points: points.length, to: run },
    }));
  },
});

interface CosmosRequest {
  readonly verb: string;
  /** Resource type: "docs". */
  readonly type: string;
  /** Parent resource: "dbs/a/colls/b". */
  readonly place: string;
  readonly date: string;
  readonly key: string;
}

/** (learn.microsoft.com: access control on Azure Cosmos DB resources) */
export function cosmosSignature({ date, key, place, type, verb }: CosmosRequest): string {
  const text = `${verb.toLowerCase()}\n${type.toLowerCase()}\n${place}\n${date.toLowerCase()}\n\n`;
  const hash = createHmac("sha256", Buffer.from(key, "base64")).update(text).digest("base64");
  return encodeURIComponent(`type=master&ver=1.0&sig=${hash}`);
}
