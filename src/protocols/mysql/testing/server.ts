/** A real MariaDB server, and a scripted one. */

import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import mysql from "mysql2/promise";
import type { CountingServer } from "../../testing/contract.ts";
import { findProgram, type ServerPackage, startServer } from "../../testing/real-server.ts";
import { listenTcp, type Peer, type ScriptedServer } from "../../testing/scripted-server.ts";

export const MARIADB: ServerPackage = { program: "mariadbd", package: "mariadb-server" };
export const mariadbProgram = findProgram(MARIADB);

type Row = Readonly<Record<string, unknown>>;

export interface MysqlServer extends CountingServer {
  /** Includes user and database. */
  readonly url: string;
  /** Result of one statement, run by a separate client. */
  ask(text: string): Promise<readonly Row[]>;
}

/** `options` as on its command line. Counts SELECTs as served. */
export async function startMysql(...options: readonly string[]): Promise<MysqlServer> {
  const program = mariadbProgram;
  if (program === null) throw new Error("there is no mariadbd");
  const root = process.getuid?.() === 0 ? ["--user=root"] : [];
  const base = ["--no-defaults", `--basedir=${join(dirname(program.path), "..")}`, ...root];
  const server = await startServer({
    program,
    args: (port, folder) => {
      const data = join(folder, "data");
      mkdirSync(data);
      const made = spawnSync(
        "mariadb-install-db",
        [...base, `--datadir=${data}`, "--auth-root-authentication-method=normal"],
        { env: withPrograms(program), encoding: "utf8" },
      );
      if (made.status !== 0) throw new Error(`mariadb-install-db: ${made.stdout}${made.stderr}`);
      const users = join(folder, "users.sql");
      writeFileSync(
        users,
        "create database shop;\n" +
          "create user shop identified by 'secret';\n" +
          "grant all on *.* to shop;\n",
      );
      return [
        ...[...base, `--datadir=${data}`, `--init-file=${users}`, `--port=${port}`],
        ...["--bind-address=127.0.0.1", `--socket=${join(folder, "s")}`, "--skip-name-resolve"],
        ...["--max-connections=300", "--innodb-flush-log-at-trx-commit=0", ...options],
      ];
    },
  });
  const url = `mysql://shop:secret@127.0.0.1:${server.port}/shop`;
  const client = await mysql.createConnection(url);
  const ask = async (text: string): Promise<readonly Row[]> => {
    const [rows] = await client.query(text);
    return rows as readonly Row[];
  };
  return {
    port: server.port,
    url,
    ask,
    served: async () => {
      const [row] = await ask("show global status like 'Com_select'");
      return Number(row?.["Value"]);
    },
    stop: async () => {
      client.destroy();
      await server.stop();
    },
  };
}

/** The script that creates a database calls other programs of its package. */
function withPrograms({
  environment,
  path,
}: NonNullable<typeof mariadbProgram>): NodeJS.ProcessEnv {
  const folders = [join(dirname(path), "../bin"), process.env["PATH"] ?? ""];
  return { ...environment, PATH: folders.join(":") };
}

/** A message with its sequence number. */
export const message = (number: number, payload: Buffer): Buffer => {
  const head = Buffer.alloc(4);
  head.writeUIntLE(payload.length, 0, 3);
  head.writeUInt8(number, 3);
  return Buffer.concat([head, payload]);
};

/** Version 10, thread 1, and twenty bytes of salt for the password. */
const GREETING = message(
  0,
  Buffer.concat([
    Buffer.from("\x0a8.0.0\0\x01\0\0\0aaaaaaaa\0", "latin1"),
    Buffer.from([0xff, 0xf7, 0x21, 0x02, 0x00, 0x0f, 0x80, 0x15]),
    Buffer.alloc(10),
    Buffer.from("bbbbbbbbbbbb\0mysql_native_password\0", "latin1"),
  ]),
);
const LET_IN = message(2, Buffer.from([0, 0, 0, 2, 0, 0, 0]));

/** Accepts every login, and invokes the callback for each statement. */
export function listenStatements(onCall: (peer: Peer) => void): Promise<ScriptedServer> {
  return listenTcp((socket) => {
    let isIn = false;
    socket.write(GREETING);
    socket.on("data", () => {
      if (isIn) onCall(socket);
      else socket.write(LET_IN);
      isIn = true;
    });
  });
}
