import { describeContract } from "../testing/contract.ts";
import { absent } from "../testing/real-server.ts";
import { listenTcp } from "../testing/scripted-server.ts";
import { FtpTarget } from "./target.ts";
import { listenFiles, PYFTPDLIB, pyftpdlib, startFtp } from "./testing/server.ts";

describeContract({
  name: "ftp",
  calls: (port) => {
    const target = new FtpTarget(`ftp://shop:secret@127.0.0.1:${port}`);
    return {
      success: target.size("hello"),
      refused: { call: target.remove("nowhere"), code: "550" },
    };
  },
  real: {
    start: pyftpdlib === null ? null : () => startFtp(),
    absent: absent(PYFTPDLIB),
    users: 200,
  },
  hostile: {
    listen: listenFiles,
    mute: () => listenTcp(() => undefined),
    resets: true,
    half: Buffer.from("213-half"),
    // The driver ignores lines without a code and waits for one that has it.
    rubbish: [Buffer.from("213 many\r\n"), Buffer.from("999 hello\r\n")],
    oversize: null,
  },
});
