import { NO_POSTGRES, TestPostgres } from "../../../test/processes/queue/server.ts";
import { describeContract } from "../testing/contract.ts";
import { listenTcp } from "../testing/scripted-server.ts";
import { PostgresTarget } from "./target.ts";
import { listenStatements, startPostgres } from "./testing/server.ts";

let database = "postgres";

describeContract({
  name: "postgres",
  calls: (port) => {
    const target = new PostgresTarget(`postgres://postgres@127.0.0.1:${port}/${database}`);
    return {
      success: target.query("select nextval('served') n"),
      refused: { call: target.query("select * from nowhere"), code: "42P01" },
    };
  },
  real: {
    start: TestPostgres.available()
      ? async () => {
          const server = await startPostgres();
          database = new URL(server.url).pathname.slice(1);
          return server;
        }
      : null,
    absent: NO_POSTGRES,
    users: 90,
  },
  hostile: {
    listen: listenStatements,
    mute: () => listenTcp(() => undefined),
    resets: true,
    // A data row of 100 bytes that ends early.
    half: Buffer.from("D\0\0\0\x64\0\x01", "latin1"),
    // The driver waits for more on input that has the form of a message and a length.
    rubbish: [Buffer.from("\x01\0\0\0\x04", "latin1"), Buffer.from("?\0\0\0\x04", "latin1")],
    oversize: null,
  },
});
