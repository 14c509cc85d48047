// A WebSocket server as a target. Each user keeps one connection; what comes unasked is counted as
// "push" and measured from the moment that each message names.

import { flow, ws } from "hyperscalejs";

const target = (process.env["HYPERSCALE_TARGET"] ?? "http://127.0.0.1:8089").replace(/^http/, "ws");
const room = ws.target(`${target}/ws`);

export default flow(
  "websocket-target",
  {
    vus: 10,
    duration: "10s",
    thresholds: ["errors.rate < 1%", "latency{step=push}.p95 < 1s"],
    userSetup: async ({ step }) => {
      const socket = await step("connect", room.connect({ keep: "user" }), { required: true });
      socket.listen("push", (message) => message.json<{ at: number }>().at);
      return { socket };
    },
  },
  async ({ step, state, user, check, pause }) => {
    const id = `${user.id}-${user.iteration}`;
    const echo = await step(
      "say",
      state.socket.request<{ id: string }>({ id }, { match: id, within: "2s" }),
    );
    check("echoed", () => echo.json().id === id);
    await step("post", state.socket.send({ at: Date.now() })); // the echo of this nobody waits for
    await pause("20ms");
  },
);
