/** Databases that speak SQL: one row per value, a batch per statement. */

import type { Client } from "pg";
import { chunks, definePush, type ReporterDefinition } from "../definition.ts";
import { framePoints } from "../encoders/point-json.ts";
import { REQUEST_MS_MAX } from "../limits.ts";
import type { SendOutcome, Transport } from "../pipeline/delivery.ts";
import type { Payload } from "../pipeline/payload-queue.ts";
import { ReporterError } from "../settings.ts";

/** Points of one statement. */
const POINTS_MAX = 1_000;
/** Classes of errors that pass: connections, resources, an operator at work, two at the same rows. */
const PASSING = /^(08|53|57|40)/;

const postgres = definePush({
  name: "postgres",
  about: "PostgreSQL, and TimescaleDB (a hypertable where it is installed)",
  target: "env:PGURL",
  settings: {
    table: {
      kind: "text",
      about: "its table, made if it is not there",
      default: "hyperscale_points",
    },
  },
  evidence: "real server",
  testedWith: "PostgreSQL 18; the hypertable is not tested",
  transport: ({ settings: { table }, target }) => {
    if (!/^[a-z_][a-z0-9_]{0,62}$/.test(table))
      throw new ReporterError("report postgres: table is a name of small letters, digits and _");
    if (!/^postgres(ql)?:\/\//.test(target))
      throw new ReporterError("report postgres: its address must begin with postgres://");
    return new PostgresTransport(target, table);
  },
  encode: (frame) =>
    chunks(framePoints(frame), POINTS_MAX).map((points) => ({
      body: Buffer.from(JSON.stringify(points)),
      points: points.length,
    })),
});

/** A connection is made when it is needed, and made again when it was lost. */
class PostgresTransport implements Transport {
  readonly #url: string;
  readonly #table: string;
  #client: Client | undefined;

  constructor(url: string, table: string) {
    this.#url = url;
    this.#table = table;
  }

  async send({ body }: Payload, signal: AbortSignal): Promise<SendOutcome> {
    const stop = (): void => void this.close();
    signal.addEventListener("abort", stop, { once: true });
    try {
      const client = this.#client ?? (await this.#connect());
      await client.query(insertOf(this.#table), [Buffer.from(body).toString("utf8")]);
      return { kind: "ok" };
    } catch (error) {
      const { code, message } = error as Error & { readonly code?: string };
      await this.close();
      const refused = code !== undefined && /^[0-9A-Z]{5}$/.test(code) && !PASSING.test(code);
      return refused
        ? { kind: "refused", problem: message }
        : { kind: "retry", problem: message, afterMs: null };
    } finally {
      signal.removeEventListener("abort", stop);
    }
  }

  async #connect(): Promise<Client> {
    // Loaded when it is used. (REP-6)
    const { default: pg } = await import("pg");
    const client = new pg.Client({
      connectionString: this.#url,
      connectionTimeoutMillis: REQUEST_MS_MAX,
      query_timeout: REQUEST_MS_MAX,
      application_name: "hyperscale",
    });
    // A connection that breaks between two batches is noticed by the next one.
    client.on("error", () => {});
    await client.connect();
    this.#client = client;
    await client.query(tableOf(this.#table));
    return client;
  }

  async close(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    await client?.end().catch(() => {});
  }
}

function tableOf(table: string): string {
  return `
    CREATE TABLE IF NOT EXISTS ${table} (
      at timestamptz NOT NULL, kind text NOT NULL, scope text NOT NULL, figure text NOT NULL,
      type text NOT NULL, unit text NOT NULL, run_id text, workflow text, step text,
      labels jsonb NOT NULL, name text NOT NULL, value double precision NOT NULL
    );
    DO $$ BEGIN
      IF EXISTS (SELECT FROM pg_proc WHERE proname = 'create_hypertable') THEN
        PERFORM create_hypertable('${table}', 'at', if_not_exists => true, migrate_data => true);
      END IF;
    END $$`;
}

/** Every value of every point is a row: "p99" of the figure "latency_ms". */
function insertOf(table: string): string {
  return `
    INSERT INTO ${table}
    SELECT p.at, p.kind, p.scope, p.figure, p.type, p.unit,
           p.labels ->> 'run_id', p.labels ->> 'workflow', p.labels ->> 'step', p.labels,
           v.key, v.value::double precision
    FROM jsonb_to_recordset($1::jsonb) AS p(
      at timestamptz, kind text, scope text, figure text, type text, unit text,
      labels jsonb, "values" jsonb
    ), jsonb_each_text(p."values") AS v`;
}

export const definitions: readonly ReporterDefinition[] = [postgres];
