// Users of one chat room. Each keeps a connection, sends a message and waits until the room has delivered it
// to everybody, itself included. Messages of others count as "heard", timed from when they were sent.

import { flow, ws } from "hyperscalejs";

const target = process.env["HYPERSCALE_TARGET"] ?? "http://127.0.0.1:8090";
const room = ws.target(`${target.replace(/^http/, "ws")}/chat`);

interface Said {
  readonly id: string;
  readonly by: string;
  readonly at: number;
}

export default flow(
  "chat",
  {
    vus: 4,
    iterationsPerVu: 10,
    thresholds: ["errors.rate < 1%", "checks.rate == 100%", "latency{step=say}.p95 < 10s"],
    userSetup: async ({ step }) => {
      const socket = await step("enter", room.connect({ keep: "user" }), { required: true });
      socket.listen("heard", (message) => message.json<Said>().at);
      return { socket };
    },
  },
  async ({ step, check, pause, state, user }) => {
    const id = `${user.id}-${user.iteration}`;
    const by = `user ${user.id}`;
    const told = await step(
      "say",
      state.socket.request<Said>(
        { id, by, at: Date.now() },
        { match: (message) => message.json<Said>().id === id, within: "30s" },
      ),
    );
    check("told with its author", () => told.json().by === by);
    await step("wave", state.socket.send({ id: `wave of ${id}`, by, at: Date.now() }));
    await pause("5ms", "20ms");
  },
);
