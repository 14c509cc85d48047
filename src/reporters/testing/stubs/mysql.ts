/** MySQL's protocol, by the server in the package mysql2. */

import type { AddressInfo, Server } from "node:net";
import { createServer } from "mysql2";
import { SECRET } from "../contract.ts";
import type { OnWrite, Served } from "./sockets.ts";

/** Members missing from the package's types. */
interface ServerConnection {
  serverHandshake(options: object): void;
  writeOk(): void;
  writeError(error: { readonly message: string; readonly code: number }): void;
  /** SET arrives as a statement to prepare. */
  on(event: "query" | "stmt_prepare", listener: (statement: string) => void): void;
  /** Every command begins with 0. */
  sequenceId: number;
  on(event: "error", listener: (error: Error) => void): void;
  readonly stream: { destroy(): void };
}

const NO_RIGHT = 1_142;
const LOCKED = 1_205;

export async function serveMysql(onWrite: OnWrite): Promise<Served> {
  const open = new Set<ServerConnection>();
  const server = createServer((connection) => {
    const made = connection as unknown as ServerConnection;
    open.add(made);
    made.on("error", () => {});
    made.serverHandshake({
      ...{ protocolVersion: 10, serverVersion: "8.0.0", connectionId: 1, statusFlags: 2 },
      ...{ characterSet: 8, capabilityFlags: 0xffffff ^ 0x800 },
      authCallback: (_: unknown, done: (error: null) => void) => {
        done(null);
        made.sequenceId = 0;
      },
    });
    const answered = (say: () => void): void => {
      say();
      made.sequenceId = 0;
    };
    made.on("stmt_prepare", () => answered(() => made.writeOk()));
    made.on("query", (statement) => {
      const answer = statement.startsWith("INSERT") ? onWrite(statement) : "take";
      if (answer === "hang") return;
      const refused = { message: `no entry for ${SECRET}`, code: NO_RIGHT };
      const passing = { message: "Lock wait timeout exceeded", code: LOCKED };
      answered(() =>
        answer === "take"
          ? made.writeOk()
          : made.writeError(answer === "refuse" ? refused : passing),
      );
    });
  });
  // The package's server can be given a port only, not an address.
  const { _server } = server as unknown as { readonly _server: Server };
  await new Promise<void>((resolve) => _server.listen(0, "127.0.0.1", resolve));
  return {
    port: (_server.address() as AddressInfo).port,
    stop: async () => {
      for (const { stream } of open) stream.destroy();
      await new Promise((resolve) => _server.close(resolve));
    },
  };
}
