// Orders as events: each is confirmed by the cluster, and heard by the one who sent it.
//
//   npm install kafkajs
//   KAFKA_URL=kafka://127.0.0.1:9092 hyperscale run examples/protocols/kafka.ts

import { flow } from "hyperscalejs";
import { kafka } from "hyperscalejs/kafka";

const events = kafka.target(process.env["KAFKA_URL"] ?? "kafka://127.0.0.1:9092");
const TOPIC = "hyperscale-orders";

export default flow(
  "orders",
  {
    vus: 3,
    duration: "20s",
    thresholds: ["errors.rate < 1%"],
    userSetup: async ({ step }) => {
      await step("listen", events.subscribe(TOPIC, { keep: "user" }), { required: true });
    },
  },
  async ({ check, step, user }) => {
    const key = `${user.id}`;
    await step("order", events.produce(TOPIC, { id: user.iteration }, { key }));
    // Everybody hears everything: what others ordered counts as heard, too.
    const heard = await step("heard", events.receive(TOPIC, { timeout: "10s" }));
    check("fresh", () => heard.value.latencyMs < 5_000);
  },
);
