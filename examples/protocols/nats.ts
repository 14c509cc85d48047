// Orders on a bus: each is confirmed by the server, and heard by the one who sent it.
//
//   NATS_URL=nats://127.0.0.1:4222 hyperscale run examples/protocols/nats.ts

import { flow } from "hyperscalejs";
import { nats } from "hyperscalejs/nats";

const bus = nats.target(process.env["NATS_URL"] ?? "nats://127.0.0.1:4222");

export default flow(
  "orders",
  {
    vus: 20,
    duration: "10s",
    thresholds: ["errors.rate < 1%"],
    userSetup: async ({ step, user }) => {
      const subject = `orders.${user.id}`;
      await step("listen", bus.subscribe(subject, { keep: "user" }), { required: true });
      return { subject };
    },
  },
  async ({ check, state, step, user }) => {
    await step("order", bus.publish(state.subject, { id: user.iteration }));
    const heard = await step("heard", bus.receive(state.subject, { timeout: "5s" }));
    check("the same", () => JSON.parse(heard.value.data.toString()).id === user.iteration);
    // Handed to the network is enough.
    await step("event", bus.publish("events", "ordered", { confirm: false }));
  },
);
