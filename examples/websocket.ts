// WebSocket. A prepared exchange sends a message and waits for its answer on a connection the virtual
// user keeps. In functions, `ws` connects, sends, receives and asks; each call is measured by itself.

import { websocket, workflow } from "hyperscalejs";

const target = (process.env["HYPERSCALE_TARGET"] ?? "http://127.0.0.1:8089").replace(/^http/, "ws");

export default workflow("websocket", {
  vus: 10,
  duration: "10s",
  think: "20ms",
  thresholds: ["errors.rate < 1%"],
})
  .step("echo", websocket.exchange(`${target}/ws`, "hello"))
  .step("open", ({ ws }) => ws.connect(`${target}/ws`))
  .step("ask", { after: ["open"] }, ({ user, ws }) =>
    ws.request({ id: user.iteration }, { match: (message) => message.text().includes('"id"') }),
  )
  .step("close", { after: ["ask"] }, ({ ws }) => ws.close())
  .check("the echo came back", ({ results }) => results.echo.text() === "hello")
  .check("the answer is ours", ({ results, user }) => {
    return results.ask.json<{ id: number }>().id === user.iteration;
  });
