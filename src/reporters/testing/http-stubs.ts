/** How each HTTP back-end is opened against a stub server, and what authenticates its requests. */

import { createPublicKey, generateKeyPairSync, verify } from "node:crypto";
import { cosmosSignature } from "../cloud/cosmosdb.ts";
import { claimsOf } from "../cloud/snowflake.ts";
import { ACCESS_KEY, isSigned } from "./check-signature.ts";
import { type Answer, SECRET, type Stub } from "./contract.ts";
import type { StubAnswer, StubRequest, StubServer } from "./stub-server.ts";

interface HttpBackEnd {
  readonly name: string;
  /** Behind `NAME=`. */
  readonly target: (url: string) => string;
  readonly proof: (request: StubRequest, url: string) => boolean;
  /** Secret it is given, and repeats when it rejects a request. */
  readonly secret?: (url: string) => string;
  /** Answers to requests before the first write; null for writes. */
  readonly before?: (request: StubRequest, url: string) => StubAnswer | null;
}

/** Key pair for back-ends that sign with one. */
const PAIR = generateKeyPairSync("rsa", { modulusLength: 2_048 });
const PRIVATE_PEM = PAIR.privateKey.export({ type: "pkcs8", format: "pem" }).toString();
const ACCESS_TOKEN = "ya29.access-token";
/** Keys of Cosmos DB are base64. */
const COSMOS_KEY = Buffer.from(SECRET).toString("base64");

const keyed = (url: string): string => `${url},key=env:SECRET`;
const tokened = (url: string): string => `${url},token=env:SECRET`;

const bySecret = ({ headers, path }: StubRequest): boolean =>
  JSON.stringify(headers).includes(SECRET) && !path.includes(SECRET);
const bySignature = (request: StubRequest, url: string): boolean => isSigned(request, url, SECRET);
const byToken = ({ headers }: StubRequest): boolean =>
  headers.authorization === `Bearer ${ACCESS_TOKEN}`;

/** Claims of a token, if our key signed it. */
function claimsIn(token: string): Readonly<Record<string, unknown>> | null {
  const [head = "", body = "", signature = ""] = token.split(".");
  const signed = Buffer.from(`${head}.${body}`);
  const key = createPublicKey(PAIR.privateKey);
  if (!verify("RSA-SHA256", signed, key, Buffer.from(signature, "base64url"))) return null;
  return JSON.parse(Buffer.from(body, "base64url").toString("utf8")) as Record<string, unknown>;
}

function googleKey(url: string): string {
  const account = { client_email: "load@example.org", private_key: PRIVATE_PEM };
  return JSON.stringify({ ...account, token_uri: `${url}/token` });
}

/** Google issues tokens for assertions with the right audience. */
function googleToken({ body, path }: StubRequest, url: string): StubAnswer | null {
  if (path !== "/token") return null;
  const form = new URLSearchParams(body.toString("utf8"));
  const claims = claimsIn(form.get("assertion") ?? "");
  const granted = claims?.["aud"] === `${url}/token` && claims["iss"] === "load@example.org";
  return granted
    ? { status: 200, body: JSON.stringify({ access_token: ACCESS_TOKEN, expires_in: 3_600 }) }
    : { status: 400, body: "invalid_grant" };
}

export const HTTP_BACK_ENDS: readonly HttpBackEnd[] = [
  {
    name: "influxdb",
    target: (url) => `${url},bucket=load,org=ours,token=env:SECRET`,
    proof: bySecret,
  },
  { name: "prometheus", target: tokened, proof: bySecret },
  {
    name: "pushgateway",
    target: (url) => `${url},user=ada,password=env:SECRET`,
    proof: ({ headers }) =>
      headers.authorization === `Basic ${Buffer.from(`ada:${SECRET}`).toString("base64")}`,
  },
  { name: "otlp", target: (url) => `${url},header=env:HEADER`, proof: bySecret },
  { name: "datadog", target: keyed, proof: bySecret },
  { name: "newrelic", target: keyed, proof: bySecret },
  { name: "honeycomb", target: keyed, proof: bySecret },
  { name: "webhook", target: tokened, proof: bySecret },
  { name: "cloudwatch", target: (url) => url, proof: bySignature },
  { name: "eventbridge", target: (url) => url, proof: bySignature },
  { name: "lambda", target: (url) => `${url},function=load-results`, proof: bySignature },
  {
    name: "timestream",
    target: (url) => `${url},database=load`,
    proof: bySignature,
    before: ({ headers }, url) => {
      if (!String(headers["x-amz-target"]).endsWith("DescribeEndpoints")) return null;
      const Endpoints = [{ Address: new URL(url).host, CachePeriodInMinutes: 60 }];
      return { status: 200, body: JSON.stringify({ Endpoints }) };
    },
  },
  {
    name: "bigquery",
    target: (url) => `load.results,endpoint=${url},key=env:GOOGLE_KEY`,
    ...{ proof: byToken, secret: googleKey },
    before: (request, url) =>
      googleToken(request, url) ??
      // The table exists already.
      (request.path.endsWith("/tables") ? { status: 409 } : null),
  },
  {
    name: "cosmosdb",
    target: (url) => `${url},database=load,key=env:COSMOS_KEY`,
    secret: () => COSMOS_KEY,
    proof: ({ headers }) =>
      headers.authorization ===
      cosmosSignature({
        ...{ verb: "POST", type: "docs", place: "dbs/load/colls/hyperscale", key: COSMOS_KEY },
        date: String(headers["x-ms-date"]),
      }),
  },
  {
    name: "snowflake",
    target: (url) => `${url},account=org-ours,user=ada,database=load,key=env:PRIVATE_KEY`,
    secret: () => PRIVATE_PEM.split("\n")[3] ?? "",
    proof: ({ headers }) => {
      const claims = claimsIn(String(headers.authorization).replace("Bearer ", ""));
      const who = { account: "org-ours", user: "ada", key: PAIR.privateKey, nowMs: Date.now() };
      return claims !== null && claims["iss"] === claimsOf(who)["iss"];
    },
    before: ({ body }) => (body.includes("CREATE TABLE") ? { status: 200 } : null),
  },
];

const STATUS: Readonly<Record<Exclude<Answer, "hang" | "refuse">, StubAnswer>> = {
  take: { status: 202 },
  wait: { status: 429, headers: { "retry-after": "1" } },
  busy: { status: 503 },
};

/** Back-end on a server that all of them share in turn. */
export function httpStub(
  { before, name, proof, secret = () => SECRET, target }: HttpBackEnd,
  server: StubServer,
): Stub {
  const writes: string[] = [];
  let proven = false;
  const { url } = server;
  const stub: Stub = {
    report: (port) => `${name}=${target(port === undefined ? url : `http://127.0.0.1:${port}`)}`,
    env: {
      ...{ SECRET, HEADER: `authorization: Bearer ${SECRET}`, COSMOS_KEY },
      ...{ AWS_ACCESS_KEY_ID: ACCESS_KEY, AWS_SECRET_ACCESS_KEY: SECRET },
      PRIVATE_KEY: PRIVATE_PEM,
      GOOGLE_KEY: googleKey(url),
    },
    answer: () => "take",
    writes,
    isProven: () => proven,
    refusal: "it answered 403: no entry for ***",
  };
  server.behaviour = (request) => {
    const first = before?.(request, url) ?? null;
    if (first !== null) return first;
    writes.push(request.path + request.body.toString("base64"));
    proven = proof(request, url);
    const answer = stub.answer(writes.length);
    if (answer === "refuse") return { status: 403, body: `no entry for ${secret(url)}` };
    return answer === "hang" ? answer : STATUS[answer];
  };
  return stub;
}
