/**
 * A database role that may submit tasks and create objects in schema public, the default of PostgreSQL 14 and
 * earlier, gains none of the rights of the queue's owner.
 */

import pg from "pg";
import { describe, expect, it } from "vitest";
import { loadMigrations } from "../../../src/queue/store/database.ts";
import { needs } from "../../needs.ts";
import { calmSettings, queueBench } from "./fixtures.ts";
import { NO_POSTGRES, TestPostgres } from "./server.ts";

/**
 * Functions and operators with exact argument types, which PostgreSQL prefers to its own polymorphic ones wherever
 * schema public is on the search path. Each makes its caller's rights the attacker's.
 */
const PLANTED = [
  ["cardinality(bigint[])", "integer", "array_length($1, 1)"],
  ["unnest(bigint[])", "setof bigint", "$1[1]"],
  ["unnest(text[])", "setof text", "$1[1]"],
  ["unnest(integer[])", "setof integer", "$1[1]"],
  ["array_append(bigint[], bigint)", "bigint[]", "$1"],
  ["times(numeric, integer)", "numeric", "$1"],
] as const;

describe(
  "a role with create on schema public",
  needs(TestPostgres.available(), NO_POSTGRES),
  () => {
    const bench = queueBench();
    let roles = 0;

    /** A database with the grants of PostgreSQL 14 in which the role has planted its functions. */
    async function hostile(database: string): Promise<{ role: string; url: string }> {
      const role = `app_${++roles}`;
      await bench.query(
        database,
        `create role ${role} login; grant create on schema public to public`,
      );
      const url = database.replace("postgres@", `${role}@`);
      for (const [signature, type, value] of PLANTED) {
        const body = type.startsWith("setof") ? `return query select ${value}` : `return ${value}`;
        await bench.query(
          url,
          `create function public.${signature} returns ${type} language plpgsql as $$
          begin execute 'alter role ${role} superuser'; ${body}; end $$`,
        );
      }
      await bench.query(
        url,
        "create operator public.* (leftarg = numeric, rightarg = integer, function = public.times)",
      );
      return { role, url };
    }

    async function isSuperuser(role: string): Promise<unknown> {
      const [row] = await bench.query(
        bench.server().url,
        `select rolsuper from pg_roles where rolname = '${role}'`,
      );
      return row?.["rolsuper"];
    }

    it("stays without rights when it submits, and when nodes start, write and read", async () => {
      const database = await bench.server().createDatabase();
      const { role, url } = await hostile(database);
      const node = await bench.node({ database, settings: calmSettings });
      await bench.query(database, `grant usage on schema hyperscale to ${role}`);
      const client = bench.client(node);
      const { id: first } = await client.submit({ executor: "sleep", input: { ms: 1 } });
      expect(await client.wait(first)).toMatchObject({ state: "SUCCEEDED" });
      const [row] = await bench.query(
        url,
        `select hyperscale.submit('sleep', '{"ms":1}', attempt_timeout => '1.5 s', depends_on => array[${first}])`,
      );
      const inside = String(row?.["submit"]);
      expect(await client.wait(inside)).toMatchObject({
        ...{ state: "SUCCEEDED", attempt_timeout_ms: 1_500 },
      });
      expect(await client.list({})).toHaveLength(2);
      expect(await isSuperuser(role)).toBe(false);
    });

    it("stays without rights in a database whose tables were in schema public", async () => {
      const database = await bench.server().createDatabase();
      const before = new pg.Client({ connectionString: database });
      await before.connect();
      await before.query(`set search_path = public;
      create table queue_migrations (version int primary key, name text not null,
        applied_at timestamptz not null default clock_timestamp())`);
      for (const { version, name, sql } of loadMigrations().filter((one) => one.version <= 11)) {
        await before.query(sql);
        await before.query("insert into queue_migrations values ($1, $2)", [version, name]);
      }
      const { rows } = await before.query("select hyperscale.submit('sleep', '{\"ms\":1}')");
      const { rows: others } = await before.query("select hyperscale.submit('sleep', '{}')");
      const ended = `update tasks set state = 'CANCELED', finished_at = clock_timestamp(),
        error = '{"type":"cancelled","message":"by hand"}' where id = $1`;
      await before.query(ended, [others[0].submit]);
      await before.end();
      const { role, url } = await hostile(database);
      await bench.query(database, `grant usage on schema hyperscale to ${role}`);
      const node = await bench.node({ database, settings: calmSettings });
      const client = bench.client(node);
      expect(await client.wait(String(rows[0].submit))).toMatchObject({ state: "SUCCEEDED" });
      expect(await client.get(String(others[0].submit))).toMatchObject({ state: "CANCELLED" });
      await bench.query(url, "select hyperscale.submit('sleep', '{}')");
      expect(await isSuperuser(role)).toBe(false);
      const left = await bench.query(
        database,
        `select relname from pg_class where relnamespace = 'public'::regnamespace
        union all select typname from pg_type where typnamespace = 'public'::regnamespace`,
      );
      expect(left).toEqual([]);
    });

    it("cannot pass its own tables off as the queue's", async () => {
      const database = await bench.server().createDatabase();
      const { role, url } = await hostile(database);
      await bench.query(url, "create table public.queue_migrations (version int, name text)");
      await expect(bench.node({ database })).rejects.toThrow(
        new RegExp(`queue_migrations in schema public belongs to ${role}`),
      );
      expect(await isSuperuser(role)).toBe(false);
    });
  },
);
