import { describe } from "vitest";
import { describeContract } from "../testing/contract.ts";
import { absent } from "../testing/real-server.ts";
import { listenTcp } from "../testing/scripted-server.ts";
import { MqttTarget } from "./target.ts";
import { MOSQUITTO, mosquittoProgram, startMosquitto } from "./testing/server.ts";

const RULES = { acl: "topic readwrite rooms/#\n" };
const CONFIGURATION = ["allow_anonymous true", "acl_file FOLDER/acl"];

describe.each(["5", "3.1.1"] as const)("version %s", (version) => {
  describeContract({
    name: "mqtt",
    calls: (port) => {
      const target = new MqttTarget(`mqtt://127.0.0.1:${port}`, { version });
      const refused = { call: target.publish("secret", "x", { qos: 1 }), code: "NOT_AUTHORIZED" };
      return {
        success: target.publish("rooms/7", "21.5", { qos: 1 }),
        // MQTT 3.1.1 cannot report it: a forbidden publication is acknowledged and dropped.
        refused: version === "5" ? refused : null,
      };
    },
    real: {
      start: mosquittoProgram === null ? null : () => startMosquitto(CONFIGURATION, RULES),
      absent: absent(MOSQUITTO),
      users: version === "5" ? 1_000 : 100,
    },
    hostile: {
      listen: (onCall) =>
        listenTcp((socket) => {
          socket.once("data", () => {
            socket.write(version === "5" ? Buffer.of(0x20, 3, 0, 0, 0) : Buffer.of(0x20, 2, 0, 0));
            socket.on("data", () => onCall(socket));
          });
        }),
      mute: () => listenTcp(() => undefined),
      resets: true,
      half: Buffer.of(0x40, 2, 0),
      rubbish: [
        Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n"),
        Buffer.of(0x40, 0xff, 0xff, 0xff, 0xff, 0x7f),
        Buffer.of(0x40, 1, 0),
        // An acknowledgement of a packet that was never sent.
        Buffer.of(0x40, 2, 0, 99),
        // A second CONNACK.
        Buffer.of(0x20, 3, 0, 0, 0),
        // QoS 3.
        Buffer.of(0x36, 5, 0, 1, 97, 0, 1),
        // A topic that is longer than its packet.
        Buffer.of(0x30, 4, 0, 200, 97, 98),
        Buffer.of(0xd0, 1, 0),
        Buffer.of(0xd0, 0),
        Buffer.of(0, 0),
      ],
      oversize: Buffer.of(0x30, 0xf0, 0xa2, 0x04),
    },
  });
});
