import { describeContract } from "../testing/contract.ts";
import { absent } from "../testing/real-server.ts";
import { listenTcp } from "../testing/scripted-server.ts";
import { SshTarget } from "./target.ts";
import { ASYNCSSH, asyncssh, listenCommands, startSsh } from "./testing/server.ts";

describeContract({
  name: "ssh",
  calls: (port) => {
    const target = new SshTarget(`ssh://shop:secret@127.0.0.1:${port}`);
    return {
      success: target.exec("echo hello"),
      refused: { call: target.get("nowhere"), code: "NO_SUCH_FILE" },
    };
  },
  real: {
    start: asyncssh === null ? null : () => startSsh(),
    absent: absent(ASYNCSSH),
    users: 50,
  },
  hostile: {
    listen: listenCommands,
    mute: () => listenTcp(() => undefined),
    resets: true,
    half: Buffer.from([1, 2, 3]),
    // Any bytes that are not encrypted with the session key.
    rubbish: [Buffer.alloc(256, 7)],
    oversize: null,
  },
});
