/** A real PostgreSQL server, and a scripted one. */

import pg from "pg";
import { TestPostgres } from "../../../../test/processes/queue/server.ts";
import type { CountingServer } from "../../testing/contract.ts";
import { listenTcp, type Peer, type ScriptedServer } from "../../testing/scripted-server.ts";

export interface PostgresServer extends CountingServer {
  /** Includes user and database. */
  readonly url: string;
  /** Result of one statement, run by a separate client. */
  ask(text: string): Promise<readonly Readonly<Record<string, unknown>>[]>;
}

/** Has a sequence that counts calls of `select nextval('served')`. */
export async function startPostgres(): Promise<PostgresServer> {
  const server = await TestPostgres.start();
  const url = await server.createDatabase();
  const client = new pg.Client(url);
  await client.connect();
  const ask = async (text: string): Promise<readonly Readonly<Record<string, unknown>>[]> =>
    (await client.query(text)).rows;
  await ask("create sequence served");
  return {
    port: server.port,
    url,
    ask,
    served: async () => {
      const [row] = await ask(
        "select case when is_called then last_value else 0 end n from served",
      );
      return Number(row?.["n"]);
    },
    stop: async () => {
      await client.end();
      await server.stop();
    },
  };
}

const message = (type: string, payload: Buffer): Buffer => {
  const head = Buffer.alloc(5);
  head.write(type, "latin1");
  head.writeInt32BE(payload.length + 4, 1);
  return Buffer.concat([head, payload]);
};

const LET_IN = Buffer.concat([message("R", Buffer.alloc(4)), message("Z", Buffer.from("I"))]);

/** Accepts every login, and invokes the callback for each statement. */
export function listenStatements(onCall: (peer: Peer) => void): Promise<ScriptedServer> {
  return listenTcp((socket) => {
    let isIn = false;
    socket.on("data", () => {
      if (isIn) onCall(socket);
      else socket.write(LET_IN);
      isIn = true;
    });
  });
}
