import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { needs } from "../../../test/needs.ts";
import { NO_POSTGRES, TestPostgres } from "../../../test/processes/queue/server.ts";
import { runExample } from "../testing/example.ts";
import { answersTo, runner, TestSession } from "../testing/session.ts";
import { PostgresTarget } from "./target.ts";
import { type PostgresServer, startPostgres } from "./testing/server.ts";

describe("a server", needs(TestPostgres.available(), NO_POSTGRES), () => {
  let server: PostgresServer;
  let db: PostgresTarget;
  beforeAll(async () => {
    server = await startPostgres();
    db = new PostgresTarget(server.url);
    await server.ask("create table items (id int primary key, name text)");
  });
  afterAll(() => server.stop());

  it("returns rows, and measures the login of a new connection separately", async () => {
    const [found, again] = await answersTo(
      db.query("select $1::int n, $2 t", [7, "x"]),
      db.query("select 1"),
    );
    expect(found).toMatchObject({ ok: true, protocol: "postgres", sent: 1 });
    expect(found?.value).toEqual({ rows: [{ n: 7, t: "x" }], rowCount: 1 });
    expect(found?.connectMs).toBeGreaterThanOrEqual(0);
    expect(found?.loginMs).toBeGreaterThan(0);
    expect(again?.connectMs).toBe(-1);
    expect(again?.bytesIn).toBeGreaterThan(20);
    expect(again?.bytesOut).toBeGreaterThan(8);
  });

  it("prepares a statement once per connection", async () => {
    const add = db.prepared("add_item", "insert into items values ($1, $2)");
    const [first, second, clash] = await answersTo(add([1, "a"]), add([2, "b"]), add([2, "c"]));
    expect([first?.value.rowCount, second?.value.rowCount]).toEqual([1, 1]);
    expect(second?.bytesOut).toBeLessThan(first?.bytesOut ?? 0);
    expect(clash).toMatchObject({ errorKind: "application", errorCode: "23505" });
  });

  it("commits all of a transaction, or nothing", async () => {
    const insert = (id: number) => db.query("insert into items values ($1, 't')", [id]);
    const [kept, undone] = await answersTo(
      db.transaction(insert(10), insert(11)),
      db.transaction(insert(12), insert(11)),
    );
    expect(kept).toMatchObject({ ok: true, sent: 4 });
    expect(kept?.value.map(({ rowCount }) => rowCount)).toEqual([1, 1]);
    expect(undone).toMatchObject({ errorKind: "application", errorCode: "23505" });
    const rows = await server.ask("select id from items where id >= 10 order by id");
    expect(rows.map(({ id }) => id)).toEqual([10, 11]);
  });

  it("copies rows by COPY, alone and in a transaction, and reports invalid ones", async () => {
    const into = "copy items from stdin (format csv)";
    const [taken, both, wrong, after] = await answersTo(
      db.copy(into, "20,nut\n21,bolt\n"),
      db.transaction(db.copy(into, Buffer.from("22,nail\n")), db.query("select 1 n")),
      db.copy(into, "23,screw\nx,y\n"),
      db.query("select count(*)::int n from items where id between 20 and 29"),
    );
    expect(taken).toMatchObject({ ok: true, sent: 1, value: { rowCount: 2, rows: [] } });
    expect(both?.value.map(({ rowCount }) => rowCount)).toEqual([1, 1]);
    expect(wrong).toMatchObject({ errorKind: "application", errorCode: "22P02" });
    expect(after?.value.rows).toEqual([{ n: 3 }]);
  });

  it("fails the call when the server closes the connection, and continues on another", async () => {
    const session = new TestSession();
    const run = await runner(db.query("select pg_terminate_backend(pg_backend_pid())"), session);
    expect((await run()).record.errorKind).toBe("reset");
    const next = await runner(db.query("select 1"), session);
    expect((await next()).record.errorKind).toBeNull();
    session.close();
  });

  it("reports a failed login by the server's own code", async () => {
    const other = new PostgresTarget(server.url, { database: "nowhere" });
    const [response] = await answersTo(other.query("select 1"));
    expect(response).toMatchObject({ errorKind: "application", errorCode: "3D000" });
  });

  it("matches the server's own count in a whole run", async () => {
    const steps = await runExample("postgres.ts", { DATABASE_URL: server.url });
    const [row] = await server.ask("select count(*) n from hyperscale_orders");
    expect(Number(row?.["n"])).toBe(steps.get("order")?.ok);
  });
});

describe("validation", () => {
  it.each([
    ["no user", () => new PostgresTarget("postgres://127.0.0.1/x"), /names no user/],
    [
      "an unknown sslmode",
      () => new PostgresTarget("postgres://a@b/x?sslmode=maybe"),
      /sslmode=maybe/,
    ],
    ["no statement", () => new PostgresTarget("postgres://a@b/x").query(" "), /is a text/],
    [
      "no name",
      () => new PostgresTarget("postgres://a@b/x").prepared("", "select 1"),
      /has a name/,
    ],
    [
      "a copy to the client",
      () => new PostgresTarget("postgres://a@b/x").copy("copy items to stdout", ""),
      /from stdin/,
    ],
    [
      "an empty transaction",
      () => new PostgresTarget("postgres://a@b/x").transaction(),
      /1 to 1000/,
    ],
  ])("reports at once: %s", (_what, make, text) => {
    expect(make).toThrow(text);
  });
});
