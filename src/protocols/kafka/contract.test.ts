import { describeContract } from "../testing/contract.ts";
import { absent } from "../testing/real-server.ts";
import { listenTcp } from "../testing/scripted-server.ts";
import { KafkaTarget } from "./target.ts";
import { answer, KCAT, kcatProgram, listenMessages, startKafka, TOPIC } from "./testing/server.ts";

describeContract({
  name: "kafka",
  calls: (port) => {
    const target = new KafkaTarget(`kafka://127.0.0.1:${port}`);
    return {
      success: target.produce(TOPIC, "hello"),
      refused: {
        call: target.produce(TOPIC, "hello", { partition: 77 }),
        code: "UNKNOWN_TOPIC_OR_PARTITION",
      },
    };
  },
  real: {
    start: kcatProgram === null ? null : () => startKafka(),
    absent: absent(KCAT),
    // The server's backlog is five connections; a sixth client retries after seconds.
    users: 40,
  },
  hostile: {
    listen: listenMessages,
    mute: () => listenTcp(() => undefined),
    resets: true,
    half: Buffer.from("\0\0\0\x64\0\0", "latin1"),
    rubbish: [
      // Announces a list of a thousand topics, and contains none.
      answer(0, Buffer.from([0, 0, 3, 232])),
      answer(0, Buffer.from([0, 0, 0, 1, 0, 99, 65])),
    ],
    oversize: null,
  },
});
