// Rooms that report their temperature; one of them listens to itself.
//
//   MQTT_URL=mqtt://127.0.0.1:1883 hyperscale run examples/protocols/mqtt.ts

import { flow } from "hyperscalejs";
import { mqtt } from "hyperscalejs/mqtt";

const broker = mqtt.target(process.env["MQTT_URL"] ?? "mqtt://127.0.0.1:1883");

export default flow(
  "rooms",
  {
    vus: 20,
    duration: "10s",
    thresholds: ["errors.rate < 1%"],
    userSetup: async ({ step, user }) => {
      const topic = `rooms/${user.id}`;
      await step("listen", broker.subscribe(topic, { qos: 1, keep: "user" }), { required: true });
      return { topic };
    },
  },
  async ({ check, state, step }) => {
    // The server has acknowledged it.
    await step("measure", broker.publish(state.topic, "21.5", { qos: 1 }));
    const heard = await step("heard", broker.receive(state.topic, { timeout: "5s" }));
    check("the same", () => heard.value.data.toString() === "21.5");
    // Handed to the network is enough.
    await step("alarm", broker.publish("alarms", "none"));
  },
);
