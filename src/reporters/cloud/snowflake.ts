/** Snowflake's SQL API with key pairs: a statement inserts the points of a batch. (SQL API v2) */

import { createHash, createPrivateKey, createPublicKey, type KeyObject } from "node:crypto";
import { definePush, httpTarget } from "../definition.ts";
import { pointBatches } from "../encoders/point-json.ts";
import { type Ask, HttpTransport } from "../pipeline/http.ts";
import type { Payload } from "../pipeline/payload-queue.ts";
import { ReporterError } from "../settings.ts";
import { signedJwt } from "./jwt.ts";

/** Points per statement. */
const POINTS_MAX = 1_000;
/** Snowflake accepts tokens of up to an hour. */
const TOKEN_SECONDS = 3_000;
const STATEMENT_SECONDS = 60;

export const snowflake = definePush({
  name: "snowflake",
  about: "Snowflake: a row per value, by its SQL API and a key pair",
  target: "https://ORGANISATION-ACCOUNT.snowflakecomputing.com",
  settings: {
    account: { kind: "text", about: "the account identifier, as in the address: ORG-ACCOUNT" },
    user: { kind: "text", about: "the user that the key belongs to" },
    key: {
      kind: "secret",
      about: "the private key (PEM): file:PATH",
      default: "env:SNOWFLAKE_KEY",
    },
    database: { kind: "text", about: "the database" },
    schema: { kind: "text", about: "the schema", default: "PUBLIC" },
    warehouse: { kind: "text", about: "what computes; the user's own by default", optional: true },
    role: { kind: "text", about: "the user's own by default", optional: true },
    table: {
      kind: "text",
      about: "its table, made if it is not there",
      default: "hyperscale_points",
    },
  },
  evidence: "own stub",
  testedWith: "a stub that checks the signature of every token",
  transport: ({ settings, target }) => {
    const { account, database, key, role, schema, table, user, warehouse } = settings;
    if (!/^[A-Za-z_][A-Za-z0-9_$]*$/.test(table))
      throw new ReporterError("report snowflake: table is a name of letters, digits and _");
    const signing = privateKey(key);
    const url = httpTarget("snowflake", target, "/api/v2/statements");
    const place = { database, schema, ...(warehouse && { warehouse }), ...(role && { role }) };
    const post = (statement: string, bindings: object, nowMs: number) => {
      const asked = { statement, bindings, timeout: STATEMENT_SECONDS, ...place };
      const body = Buffer.from(JSON.stringify(asked));
      const numbered = new URL(url);
      // `requestId` lets Snowflake recognise a statement that is sent again, and run it once.
      numbered.searchParams.set("requestId", requestId(body));
      numbered.searchParams.set("retry", "true");
      const token = signedJwt(signing, claimsOf({ account, user, key: signing, nowMs }));
      const headers = {
        ...{ "content-type": "application/json", accept: "application/json" },
        "x-snowflake-authorization-token-type": "KEYPAIR_JWT",
        authorization: `Bearer ${token}`,
      };
      return { method: "POST", url: numbered, headers, body };
    };
    let isThere = false;
    const request = async ({ body }: Payload, ask: Ask) => {
      const nowMs = Date.now();
      if (!isThere) await ask(post(tableOf(table), {}, nowMs));
      isThere = true;
      const points = Buffer.from(body).toString("utf8");
      return post(insertOf(table), { "1": { type: "TEXT", value: points } }, nowMs);
    };
    return new HttpTransport({ gzip: false, request });
  },
  encode: (frame) => pointBatches(frame, POINTS_MAX),
});

function privateKey(pem: string): KeyObject {
  try {
    return createPrivateKey(pem.replaceAll("\\n", "\n"));
  } catch {
    // The parser's own message would reveal parts of the key.
    throw new ReporterError("report snowflake: key is not a private key in PEM form");
  }
}

interface Claimed {
  readonly account: string;
  readonly user: string;
  readonly key: KeyObject;
  readonly nowMs: number;
}

/** The issuer names account, user and the fingerprint of the public key. (docs.snowflake.com: key pair) */
export function claimsOf({
  account,
  key,
  nowMs,
  user,
}: Claimed): Readonly<Record<string, unknown>> {
  const publicKey = createPublicKey(key).export({ type: "spki", format: "der" });
  const fingerprint = createHash("sha256").update(publicKey).digest("base64");
  const subject = `${account.replace(/\./g, "-")}.${user}`.toUpperCase();
  const now = Math.floor(nowMs / 1_000);
  const iss = `${subject}.SHA256:${fingerprint}`;
  return { iss, sub: subject, iat: now, exp: now + TOKEN_SECONDS };
}

/** Derives the request id from the body. */
function requestId(body: Uint8Array): string {
  const hex = createHash("sha256").update(body).digest("hex");
  const parts = [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `4${hex.slice(13, 16)}`,
    `8${hex.slice(17, 20)}`,
  ];
  return [...parts, hex.slice(20, 32)].join("-");
}

function tableOf(table: string): string {
  return `CREATE TABLE IF NOT EXISTS ${table} (
    at TIMESTAMP_TZ, kind STRING, scope STRING, figure STRING, type STRING, unit STRING,
    run_id STRING, workflow STRING, step STRING, labels VARIANT, name STRING, value DOUBLE)`;
}

function insertOf(table: string): string {
  const texts = ["kind", "scope", "figure", "type", "unit"].map(
    (name) => `p.value:${name}::STRING`,
  );
  const labels = ["run_id", "workflow", "step"].map((name) => `p.value:labels:${name}::STRING`);
  return `INSERT INTO ${table} SELECT p.value:at::TIMESTAMP_TZ, ${[...texts, ...labels].join(", ")},
    p.value:labels, v.key, v.value::DOUBLE
    FROM TABLE(FLATTEN(INPUT => PARSE_JSON(?))) p, LATERAL FLATTEN(INPUT => p.value:values) v`;
}
