/** PostgreSQL, and TimescaleDB on it. */

import { definePush } from "../definition.ts";
import { pointBatches } from "../encoders/point-json.ts";
import { REQUEST_MS_MAX } from "../limits.ts";
import { type Session, SessionTransport } from "../pipeline/session.ts";
import { ReporterError } from "../settings.ts";
import { TABLE, tableName } from "./table.ts";

/** Points per statement. */
const POINTS_MAX = 1_000;
/** Transient classes of errors: connections, resources, operator intervention, conflicts. */
const PASSING = /^(08|53|57|40)/;

export const postgres = definePush({
  name: "postgres",
  about: "PostgreSQL, and TimescaleDB (a hypertable where it is installed)",
  target: "env:PGURL",
  settings: { table: TABLE },
  evidence: "real server",
  testedWith: "PostgreSQL 18; the hypertable is not tested",
  transport: ({ settings, target }) => {
    const table = tableName("postgres", settings.table);
    if (!/^postgres(ql)?:\/\//.test(target))
      throw new ReporterError("report postgres: its address must begin with postgres://");
    return new SessionTransport({ open: (signal) => opened(target, table, signal), isRefusal });
  },
  encode: (frame) => pointBatches(frame, POINTS_MAX),
});

async function opened(url: string, table: string, signal: AbortSignal): Promise<Session> {
  // Loaded on first use. (REP-6)
  const { default: pg } = await import("pg");
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: REQUEST_MS_MAX,
    application_name: "hyperscale",
  });
  // The next batch notices a connection that broke in between.
  client.on("error", () => {});
  const destroy = (): void => void client.end().catch(() => {});
  signal.addEventListener("abort", destroy, { once: true });
  await client.connect();
  await client.query(tableOf(table));
  return {
    write: async (body) => {
      await client.query(insertOf(table), [withoutNul(body.toString("utf8"))]);
    },
    close: () => client.end(),
    destroy,
  };
}

/** Removes NUL, the one character PostgreSQL cannot store; an escaped backslash before it makes it plain text. */
export function withoutNul(json: string): string {
  return json.replace(/(?<!\\)((?:\\\\)*)\\u0000/g, "$1");
}

/** Only errors reported by the server have a code of five characters. */
function isRefusal(error: unknown): boolean {
  const { code } = error as { readonly code?: string };
  return code !== undefined && /^[0-9A-Z]{5}$/.test(code) && !PASSING.test(code);
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
