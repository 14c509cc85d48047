import { describeContract } from "../testing/contract.ts";
import { absent } from "../testing/real-server.ts";
import { listenTcp } from "../testing/scripted-server.ts";
import { RabbitmqTarget } from "./target.ts";
import {
  frame,
  listenMessages,
  method,
  QUEUE,
  RABBITMQ_SERVER,
  rabbitmqProgram,
  startRabbitmq,
} from "./testing/server.ts";

describeContract({
  name: "rabbitmq",
  calls: (port) => {
    const target = new RabbitmqTarget(`amqp://127.0.0.1:${port}`);
    return {
      success: target.send(QUEUE, "hello"),
      refused: { call: target.publish("nowhere", "", "hello"), code: "NOT_FOUND" },
    };
  },
  real: {
    start: rabbitmqProgram === null ? null : () => startRabbitmq(),
    absent: absent(RABBITMQ_SERVER),
    users: 100,
  },
  hostile: {
    listen: listenMessages,
    mute: () => listenTcp(() => undefined),
    resets: true,
    half: Buffer.from("\x01\0\x01\0\0\0\x64\0", "latin1"),
    rubbish: [
      // Without its last byte, and of an unknown type.
      Buffer.from("\x01\0\x01\0\0\0\x04\0\x3c\0\x50\0", "latin1"),
      frame(9, 1, Buffer.from([0])),
      method(1, 0, 99, 0, 99),
    ],
    // Announces more than the negotiated size.
    oversize: Buffer.from("\x01\0\x01\x7f\xff\xff\xff\0", "latin1"),
  },
});
