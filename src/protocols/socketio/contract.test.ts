import { describeContract } from "../testing/contract.ts";
import { listenTcp } from "../testing/scripted-server.ts";
import { SocketioTarget } from "./target.ts";
import { listenChat, startChat, textFrame } from "./testing/server.ts";

describeContract({
  name: "socketio",
  calls: (port) => ({
    success: new SocketioTarget(`http://127.0.0.1:${port}`).request("echo", ["hello", { id: 7 }]),
    // Refusals of events are up to the application; for refused connections see socketio.test.ts.
    refused: null,
  }),
  real: { start: startChat, absent: "", users: 1_000 },
  hostile: {
    listen: listenChat,
    mute: () => listenTcp(() => undefined),
    resets: true,
    half: textFrame("4" + '61-0[{"_placeholder":true,"num":0}]'),
    rubbish: [
      Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n"),
      textFrame("9"),
      textFrame(""),
      textFrame("4"),
      textFrame("43[1]"),
      textFrame("430{}"),
      textFrame("430[1"),
      textFrame("43999[1]"),
      textFrame('42["x"'),
      textFrame("42[7]"),
      textFrame('42/other,["x"]'),
      textFrame('451-["x"]x'),
      textFrame('459999-["x"]'),
      textFrame("0{}"),
      textFrame('40{"sid":"c"}'),
      Buffer.of(0x82, 1, 7),
      Buffer.concat([textFrame('461-0[{"_placeholder":true,"num":3}]'), Buffer.of(0x82, 1, 7)]),
      Buffer.concat([textFrame('461-0[{"_placeholder":true,"num":0}]'), textFrame("430[1]")]),
    ],
    oversize: textFrame(`430["${"x".repeat(70_000)}"]`),
  },
});
