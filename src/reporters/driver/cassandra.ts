/** Cassandra and compatible databases: a row per value, by run. */

import { definePush } from "../definition.ts";
import { type PointObject, pointBatches } from "../encoders/point-json.ts";
import { type Session, SessionTransport } from "../pipeline/session.ts";
import { ReporterError } from "../settings.ts";
import { TABLE, tableName } from "../sql/table.ts";
import { type CqlAddress, CqlConnection, CqlError, type CqlValue } from "./cql.ts";

/** Keeps some 600 rows in flight. */
const POINTS_MAX = 100;
const PORT = 9_042;
/** Transient errors: too few replicas, overloaded, starting, timed out, or statement no longer prepared. */
const PASSING: ReadonlySet<number> = new Set([
  ...[0x0000, 0x1000, 0x1001, 0x1002, 0x1100, 0x1200, 0x1500, 0x2500],
]);

export const cassandra = definePush({
  name: "cassandra",
  about: "Apache Cassandra and ScyllaDB: a table of values by run and scope",
  target: "127.0.0.1:9042/keyspace",
  settings: {
    table: TABLE,
    user: { kind: "text", about: "who logs in", optional: true },
    password: { kind: "secret", about: "the user's password", optional: true },
    tls: { kind: "switch", about: "encrypt", default: "false" },
  },
  evidence: "real server",
  testedWith: "Cassandra 2.1 (npm run test:reporters -- --nightly)",
  transport: ({ settings, target }) => {
    const { password, tls, user } = settings;
    const table = tableName("cassandra", settings.table);
    const [, host, port, keyspace] = /^(.+?)(?::(\d{1,5}))?\/(\w+)$/.exec(target) ?? [];
    if (host === undefined || keyspace === undefined)
      throw new ReporterError("report cassandra: write cassandra=HOST:PORT/KEYSPACE");
    const address = { host, port: Number(port ?? PORT), tls, user, password };
    return new SessionTransport({
      open: (signal) => opened(address, `${keyspace}.${table}`, signal),
      isRefusal: (error) => error instanceof CqlError && !PASSING.has(error.code),
    });
  },
  encode: (frame) => pointBatches(frame, POINTS_MAX),
});

async function opened(address: CqlAddress, table: string, signal: AbortSignal): Promise<Session> {
  const connection = new CqlConnection(address);
  const destroy = (): void => connection.destroy();
  signal.addEventListener("abort", destroy, { once: true });
  await connection.start(address);
  await connection.query(tableOf(table));
  const statement = await connection.prepare(insertOf(table));
  return {
    write: async (body) => {
      const points = JSON.parse(body.toString("utf8")) as readonly PointObject[];
      const rows = points.flatMap(rowsOf);
      await Promise.all(rows.map((values) => connection.execute(statement, values)));
    },
    close: async () => connection.destroy(),
    destroy,
  };
}

const COLUMNS = [
  ...["run_id", "scope", "at", "kind", "figure", "series", "name", "type", "unit"],
  ...["workflow", "step", "labels", "value"],
];

/** Writing the same row again is idempotent. */
function rowsOf(point: PointObject): CqlValue[][] {
  const { at, figure, kind, labels, scope, type, unit, values } = point;
  const { run = "", run_id = run, step = "", workflow = "" } = labels;
  const key = [run_id, scope, new Date(at), kind, figure, JSON.stringify(labels)];
  const rest = [type, unit, workflow, step, labels];
  return Object.entries(values).map(([name, value]) => [...key, name, ...rest, value]);
}

function tableOf(table: string): string {
  return `CREATE TABLE IF NOT EXISTS ${table} (
    run_id text, scope text, at timestamp, kind text, figure text, series text, name text,
    type text, unit text, workflow text, step text, labels map<text, text>, value double,
    PRIMARY KEY ((run_id, scope), kind, figure, at, series, name))`;
}

function insertOf(table: string): string {
  const marks = COLUMNS.map(() => "?");
  return `INSERT INTO ${table} (${COLUMNS.join(", ")}) VALUES (${marks.join(", ")})`;
}
