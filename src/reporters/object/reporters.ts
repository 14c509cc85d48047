/** Object stores: the files of a run under a prefix, written when it has finished. */

import { AWS_KEYS } from "../cloud/aws-keys.ts";
import { signedHeaders } from "../cloud/sigv4.ts";
import {
  DEADLINE,
  deadlineOf,
  defineReporter,
  httpTarget,
  type ReporterDefinition,
} from "../definition.ts";
import { junitXml } from "../file/junit.ts";
import { summaryJson } from "../file/summary-json.ts";
import { Delivery } from "../pipeline/delivery.ts";
import { HttpTransport } from "../pipeline/http.ts";
import type { Payload } from "../pipeline/payload-queue.ts";
import { ReporterError } from "../settings.ts";

interface Store {
  readonly name: string;
  readonly about: string;
  readonly target: string;
  readonly endpoint: string;
  readonly region: string;
}

function defineStore({ about, endpoint, name, region, target }: Store): ReporterDefinition {
  const settings = {
    ...AWS_KEYS,
    region: { kind: "text", about: "the region that signs", default: region },
    endpoint: { kind: "text", about: "another server that speaks S3", default: endpoint },
    deadline: DEADLINE,
  } as const;
  const evidence = "emulator";
  const testedWith = "s3rver 3.7; signatures by the published vectors and a stub that checks them";
  return defineReporter(
    { name, about, target, settings, evidence, testedWith },
    ({ onProblem, scrub, settings: given, target: place }) => {
      const [, bucket, prefix = ""] = /^([a-z0-9][a-z0-9.-]+)(?:\/(.*))?$/.exec(place) ?? [];
      if (bucket === undefined)
        throw new ReporterError(`report ${name}: write ${name}=BUCKET/PREFIX`);
      const base = httpTarget(name, given.endpoint);
      const { accessKey, region: signing, secretKey, sessionToken } = given;
      const request = ({ body, to = "" }: Payload) => {
        const url = new URL(base);
        url.pathname = `/${bucket}/${to.split("/").map(encodeURIComponent).join("/")}`;
        const headers = signedHeaders({
          ...{ method: "PUT", url, body, service: "s3", region: signing, at: new Date() },
          headers: { "content-type": contentTypeOf(to) },
          credentials: { accessKey, secretKey, sessionToken },
        });
        return { method: "PUT", url, headers, body };
      };
      const transport = new HttpTransport({ gzip: false, request });
      const closeMs = deadlineOf(given.deadline, name);
      const delivery = new Delivery({ transport, joins: false, closeMs, scrub, onProblem });
      return {
        last: true,
        start: async (_, signal) => {
          signal.addEventListener("abort", () => delivery.hurry(), { once: true });
        },
        finish: async (summary) => {
          const id = summary.runId ?? summary.startedAt;
          const folder = [prefix.replace(/\/$/, ""), id].filter((part) => part !== "").join("/");
          const files = { "summary.json": summaryJson(summary), "junit.xml": junitXml(summary) };
          for (const [file, text] of Object.entries(files))
            delivery.offer({ body: Buffer.from(text), points: 1, to: `${folder}/${file}` });
        },
        close: () => delivery.close(),
        counts: () => delivery.counts(),
      };
    },
  );
}

function contentTypeOf(key: string): string {
  return key.endsWith(".json") ? "application/json" : "application/xml";
}

export const definitions: readonly ReporterDefinition[] = [
  defineStore({
    ...{ name: "s3", about: "S3 and what speaks like it: summary.json and junit.xml by run" },
    ...{ target: "bucket/results", endpoint: "https://s3.amazonaws.com", region: "us-east-1" },
  }),
  defineStore({
    ...{ name: "gcs", about: "Google Cloud Storage with HMAC keys, in its S3 form" },
    ...{ target: "bucket/results", endpoint: "https://storage.googleapis.com", region: "auto" },
  }),
];
