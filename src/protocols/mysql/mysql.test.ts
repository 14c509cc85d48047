import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { needs } from "../../../test/needs.ts";
import type { PreparedCall } from "../protocol.ts";
import { certificateFiles } from "../testing/certificate.ts";
import { runExample } from "../testing/example.ts";
import { absent } from "../testing/real-server.ts";
import { answersTo, runner, TestSession } from "../testing/session.ts";
import { type MysqlResponse, MysqlTarget } from "./target.ts";
import { MARIADB, type MysqlServer, mariadbProgram, startMysql } from "./testing/server.ts";

describe("a server", needs(mariadbProgram !== null, absent(MARIADB)), () => {
  let server: MysqlServer;
  let db: MysqlTarget;
  beforeAll(async () => {
    server = await startMysql();
    db = new MysqlTarget(server.url);
    await server.ask("create table items (id int primary key auto_increment, name text)");
  });
  afterAll(() => server.stop());

  it("returns rows, and measures the login of a new connection separately", async () => {
    const [found, again] = await answersTo(
      db.query("select ? n, ? t", [7, "it's"]),
      db.query("select 1"),
    );
    expect(found).toMatchObject({ ok: true, protocol: "mysql", sent: 1 });
    expect(found?.value).toEqual({ rows: [{ n: 7, t: "it's" }], rowCount: 1, insertId: 0 });
    expect(found?.connectMs).toBeGreaterThanOrEqual(0);
    expect(found?.loginMs).toBeGreaterThan(0);
    expect(again?.connectMs).toBe(-1);
    expect(again?.bytesIn).toBeGreaterThan(20);
    expect(again?.bytesOut).toBeGreaterThan(8);
  });

  it("prepares a statement once per connection", async () => {
    const add = (id: number | null, name: string): PreparedCall<MysqlResponse> =>
      db.execute("insert into items values (?, ?)", [id, name]);
    const prepared = async (): Promise<number> => {
      const [row] = await server.ask("show global status like 'Com_stmt_prepare'");
      return Number(row?.["Value"]);
    };
    const before = await prepared();
    const [first, second, clash] = await answersTo(add(1, "a"), add(null, "b"), add(2, "c"));
    expect(first?.value).toMatchObject({ rowCount: 1 });
    expect(second?.value).toMatchObject({ rowCount: 1, insertId: 2 });
    expect(clash).toMatchObject({ errorKind: "application", errorCode: "ER_DUP_ENTRY" });
    expect(await prepared()).toBe(before + 1);
  });

  it("commits all of a transaction, or nothing", async () => {
    const insert = (id: number) => db.query("insert into items values (?, 't')", [id]);
    const [kept, undone, after] = await answersTo(
      db.transaction(insert(10), insert(11)),
      db.transaction(insert(12), insert(11)),
      insert(13),
    );
    expect(kept).toMatchObject({ ok: true, sent: 4 });
    expect(undone).toMatchObject({ errorKind: "application", errorCode: "ER_DUP_ENTRY" });
    expect(after).toMatchObject({ ok: true, connectMs: -1 });
    const rows = await server.ask("select id from items where id >= 10 order by id");
    expect(rows.map(({ id }) => id)).toEqual([10, 11, 13]);
  });

  it("returns the rows of a procedure", async () => {
    await server.ask("create procedure two() select 2 n");
    const [called] = await answersTo(db.query("call two()"));
    expect(called?.value.rows).toEqual([{ n: 2 }]);
  });

  it("fails the call when the server closes the connection, and continues on another", async () => {
    const session = new TestSession();
    const cut = (await runner(db.query("select sleep(60)"), session))();
    const sleeping =
      "select id from information_schema.processlist where info = 'select sleep(60)'";
    await expect.poll(async () => (await server.ask(sleeping)).length).toBe(1);
    const [row] = await server.ask(sleeping);
    await server.ask(`kill ${row?.["id"]}`);
    expect((await cut).record.errorKind).toBe("reset");
    const next = await runner(db.query("select 1"), session);
    expect((await next()).record.errorKind).toBeNull();
    session.close();
  });

  it("reports a failed login by the server's own name for it", async () => {
    const nowhere = new MysqlTarget(server.url, { database: "nowhere" });
    const stranger = new MysqlTarget(server.url, { password: "wrong" });
    const [first, second] = await answersTo(nowhere.query("select 1"), stranger.query("select 1"));
    expect(first).toMatchObject({ errorKind: "application", errorCode: "ER_BAD_DB_ERROR" });
    expect(second).toMatchObject({ errorKind: "application", errorCode: "ER_ACCESS_DENIED_ERROR" });
  });

  it("fails as TLS when the server does not support it", async () => {
    const [refused] = await answersTo(new MysqlTarget(server.url, { tls: true }).query("select 1"));
    expect(refused).toMatchObject({ ok: false, errorKind: "tls" });
  });

  it("matches the server's own count in a whole run", async () => {
    const steps = await runExample("mysql.ts", { DATABASE_URL: server.url });
    const [row] = await server.ask("select count(*) n from hyperscale_orders");
    expect(Number(row?.["n"])).toBe(steps.get("order")?.ok);
  });
});

describe("over TLS", needs(mariadbProgram !== null, absent(MARIADB)), () => {
  it("trusts only the given authority", async () => {
    const { cert, certFile, keyFile } = certificateFiles();
    const server = await startMysql(`--ssl-cert=${certFile}`, `--ssl-key=${keyFile}`);
    onTestFinished(() => server.stop());
    const cipher = "show status like 'Ssl_cipher'";
    const trusting = new MysqlTarget(`${server.url}?ssl-mode=REQUIRED`, { ca: cert });
    const doubting = new MysqlTarget(server.url, { tls: true });
    const [found, refused] = await answersTo(trusting.query(cipher), doubting.query(cipher));
    expect(found.value.rows[0]?.["Value"]).toMatch(/^TLS/);
    expect(refused.errorKind).toBe("tls");
  });
});

describe("validation", () => {
  it.each([
    ["no user", () => new MysqlTarget("mysql://127.0.0.1/x"), /names no user/],
    [
      "an unknown ssl-mode",
      () => new MysqlTarget("mysql://a@b/x?ssl-mode=maybe"),
      /ssl-mode=maybe/,
    ],
    ["no statement", () => new MysqlTarget("mysql://a@b/x").query(" "), /is a text/],
    [
      "a value that is not there",
      () => new MysqlTarget("mysql://a@b/x").execute("select ?", [undefined]),
      /value 1 .* null says NULL/,
    ],
    ["an empty transaction", () => new MysqlTarget("mysql://a@b/x").transaction(), /1 to 1000/],
  ])("reports at once: %s", (_what, make, text) => {
    expect(make).toThrow(text);
  });
});
