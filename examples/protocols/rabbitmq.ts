// Work through a queue: sent with the server's confirmation, received by the one who sent it; and a log.
//
//   npm install amqplib
//   RABBITMQ_URL=amqp://127.0.0.1:5672 hyperscale run examples/protocols/rabbitmq.ts

import { flow } from "hyperscalejs";
import { rabbitmq } from "hyperscalejs/rabbitmq";

const broker = rabbitmq.target(process.env["RABBITMQ_URL"] ?? "amqp://127.0.0.1:5672");
const LOG = "hyperscale-log";

export default flow(
  "work",
  {
    vus: 10,
    duration: "10s",
    thresholds: ["errors.rate < 1%"],
    setup: async ({ step }) => {
      await step("queue", broker.declareQueue(LOG), { required: true });
    },
    userSetup: async ({ step, user }) => {
      const queue = `hyperscale-${user.id}`;
      await step("queue", broker.declareQueue(queue, { exclusive: true }), { required: true });
      await step("consume", broker.consume(queue, { keep: "user" }), { required: true });
      return { queue };
    },
  },
  async ({ check, state, step, user }) => {
    await step("work", broker.send(state.queue, { id: user.iteration }));
    const work = await step("next", broker.receive(state.queue, { timeout: "5s" }));
    check("the same", () => JSON.parse(work.value.data.toString()).id === user.iteration);
    await step("log", broker.send(LOG, "done", { persistent: true }));
  },
);
