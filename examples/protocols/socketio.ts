// A chat over Socket.IO: a request that the server answers, and an event that it sends back.
//
//   SOCKETIO_URL=http://127.0.0.1:3000/rooms hyperscale run examples/protocols/socketio.ts

import { flow } from "hyperscalejs";
import { socketio } from "hyperscalejs/socketio";

const chat = socketio.target(process.env["SOCKETIO_URL"] ?? "http://127.0.0.1:3000/rooms", {
  auth: { token: process.env["SOCKETIO_TOKEN"] ?? "" },
});

export default flow(
  "chat",
  { vus: 10, duration: "10s", thresholds: ["errors.rate < 1%"] },
  async ({ check, step, user }) => {
    const answer = await step("ask", chat.request<[number]>("echo", [user.iteration]));
    check("the same", () => answer.value[0] === user.iteration);
    await step("tell", chat.emit("tell", [{ text: "hello" }]));
    const told = await step("told", chat.receive("told", { timeout: "5s" }));
    check("heard", () => told.value.args.length === 1);
  },
);
