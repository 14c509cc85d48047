// Users of one room. Each keeps one connection, says something, and waits until the room has told it to
// everybody, itself included: what others say meanwhile is not taken for the answer.

import { flow, websocket } from "hyperscale";

const target = process.env["HYPERSCALE_TARGET"] ?? "http://127.0.0.1:8090";
const room = `${target.replace(/^http/, "ws")}/chat`;

interface Said {
  readonly id: string;
  readonly by: string;
}

export default flow(
  "chat",
  {
    vus: 4,
    iterationsPerVu: 10,
    thresholds: ["errors.rate < 1%", "checks.rate == 100%", "latency{step=say}.p95 < 10s"],
  },
  async ({ step, check, pause, user }) => {
    const id = `${user.id}-${user.iteration}`;
    const heard = await step(
      "say",
      websocket.exchange(
        room,
        { id, by: `user ${user.id}` },
        { match: (message) => message.json<Said>().id === id },
      ),
    );
    check("told with its author", () => heard.json<Said>().by === `user ${user.id}`);
    await pause("5ms", "20ms");
  },
);
