import { describeContract } from "../testing/contract.ts";
import { absent } from "../testing/real-server.ts";
import { listenTcp } from "../testing/scripted-server.ts";
import { ANSWER_BYTES_MAX } from "./limits.ts";
import { SmtpTarget } from "./target.ts";
import { AIOSMTPD, aiosmtpdProgram, listenMails, startMail } from "./testing/server.ts";

describeContract({
  name: "smtp",
  calls: (port) => {
    const target = new SmtpTarget(`smtp://127.0.0.1:${port}`);
    const [from, to] = ["a@shop.test", "b@shop.test"];
    return {
      success: target.send({ from, to, subject: "hello", text: "hello" }),
      refused: {
        // Longer than the server accepts, and not announced in advance.
        call: target.send({ from: `${"x".repeat(600)}@shop.test`, to, text: "hello" }),
        code: "500",
      },
    };
  },
  real: {
    start: aiosmtpdProgram === null ? null : () => startMail(),
    absent: absent(AIOSMTPD),
    users: 200,
  },
  hostile: {
    listen: listenMails,
    mute: () => listenTcp(() => undefined),
    resets: true,
    half: Buffer.from("250-half"),
    rubbish: [Buffer.from("hello\r\n"), Buffer.from("\0\x01\x02\r\n", "latin1")],
    oversize: Buffer.from(`250-${"x".repeat(ANSWER_BYTES_MAX)}`),
  },
});
