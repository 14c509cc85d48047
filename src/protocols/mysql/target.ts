/**
 * \n A MySQL or MariaDB server, as users write it.
 *
 *   const db = mysql.target("mysql://shop:secret@db.test/shop");
 *   const byId = "select * from items where id = ?";
 *   const found = await step("find", db.execute(byId, [7]));
 *   await step("order", db.transaction(db.query("insert …"), db.query("update …")));
 */

import { credentialsOf, pathOf } from "../target/credentials.ts";
import type { DescribedCall } from "../target/described-call.ts";
import { DriverConnection } from "../target/driver-connection.ts";
import type { TargetResult } from "../target/result.ts";
import { checkedText, pingCall, statementCall, transactionCall } from "../target/sql.ts";
import { Target, type TargetOptions, type TargetProtocol } from "../target/target.ts";
import type { MysqlCommand, Rows } from "./command.ts";
import { MysqlDriver, type MysqlLogin, mysqlDriver } from "./connection.ts";

export interface MysqlOptions extends TargetOptions {
  /** User to log in as; defaults to the user in the address. */
  readonly user?: string;
  readonly password?: string;
  /** Defaults to the path of the address. */
  readonly database?: string;
  /** Uses TLS, like `?ssl-mode=REQUIRED` in the address. */
  readonly tls?: boolean;
}

/** Values for the question marks of a statement. */
export type Parameters = readonly unknown[];

export type MysqlResponse<Value = Rows> = TargetResult<Value>;

/** A described statement, or a transaction of them. */
export type MysqlCall<Value> = DescribedCall<MysqlCommand, Value>;

export const MYSQL: TargetProtocol = {
  name: "mysql",
  schemes: {
    mysql: { port: 3306, secure: false },
    mariadb: { port: 3306, secure: false },
  },
  optionNames: ["user", "password", "database", "tls"],
  load: () => mysqlDriver.load(),
};

const NONE: Parameters = [];
const EXAMPLE = 'query("select * from items where id = ?", [7])';

export class MysqlTarget {
  readonly #target: Target<MysqlCommand>;

  constructor(address: string, options: MysqlOptions = {}) {
    this.#target = new Target(
      MYSQL,
      address,
      options,
      (host, now) => new DriverConnection(host, driver, now),
    );
    const driver = new MysqlDriver(loginOf(this.#target.url, options));
  }

  /**
   * One statement; `value` has its `rows`, `rowCount` and `insertId`. The values are inserted into the text before it
   * is sent.
   */
  query(text: string, values: Parameters = NONE): MysqlCall<Rows> {
    return statementCall(this.#target, {
      text: checkedText(text, EXAMPLE),
      values,
      prepared: false,
    });
  }

  /** The same as a prepared statement: each connection prepares a text once. */
  execute(text: string, values: Parameters = NONE): MysqlCall<Rows> {
    return statementCall(this.#target, {
      text: checkedText(text, EXAMPLE),
      values: checkedValues(values),
      prepared: true,
    });
  }

  /**
   * Several statements, all or nothing: one measured call until COMMIT. The first one that fails rolls back the
   * transaction.
   */
  transaction(...calls: readonly MysqlCall<Rows>[]): MysqlCall<readonly Rows[]> {
    return transactionCall(this.#target, calls);
  }

  ping(): MysqlCall<string> {
    return pingCall(this.#target, { text: "select 1", values: NONE, prepared: false });
  }
}

/** Rejects undefined, which the binary protocol cannot encode. */
function checkedValues(values: Parameters): Parameters {
  const at = values.findIndex((value) => value === undefined || typeof value === "function");
  if (at < 0) return values;
  throw new TypeError(`value ${at + 1} of a statement is ${typeof values[at]}: null says NULL`);
}

const TLS_MODES = ["DISABLED", "REQUIRED", "VERIFY_IDENTITY"];

function loginOf(url: URL, options: MysqlOptions): MysqlLogin {
  const { password, user } = credentialsOf(url, options);
  const mode = url.searchParams.get("ssl-mode") ?? "DISABLED";
  if (!TLS_MODES.includes(mode))
    throw new TypeError(`ssl-mode=${mode} is not known: ${TLS_MODES.join(", ")}`);
  if (user === "") throw new TypeError("mysql.target: the address names no user");
  return {
    user,
    password,
    database: pathOf(url, options.database),
    tls: options.tls ?? mode !== "DISABLED",
  };
}
