import { describeContract } from "../testing/contract.ts";
import { absent } from "../testing/real-server.ts";
import { listenTcp } from "../testing/scripted-server.ts";
import { MysqlTarget } from "./target.ts";
import {
  listenStatements,
  MARIADB,
  mariadbProgram,
  message,
  startMysql,
} from "./testing/server.ts";

describeContract({
  name: "mysql",
  calls: (port) => {
    const target = new MysqlTarget(`mysql://shop:secret@127.0.0.1:${port}/shop`);
    return {
      success: target.query("select 1 n"),
      refused: { call: target.query("show columns from nowhere"), code: "ER_NO_SUCH_TABLE" },
    };
  },
  real: {
    start: mariadbProgram === null ? null : () => startMysql(),
    absent: absent(MARIADB),
    users: 90,
  },
  hostile: {
    listen: listenStatements,
    mute: () => listenTcp(() => undefined),
    resets: true,
    // One column, whose description of 100 bytes ends early.
    half: Buffer.concat([
      message(1, Buffer.from([1])),
      Buffer.from("\x64\0\0\x02\x03de", "latin1"),
    ]),
    rubbish: [
      // A column shorter than its own lengths.
      Buffer.concat([message(1, Buffer.from([1])), message(2, Buffer.from("\x03d", "latin1"))]),
      // Out of sequence.
      message(7, Buffer.from([0, 0, 0, 2, 0, 0, 0])),
    ],
    oversize: null,
  },
});
