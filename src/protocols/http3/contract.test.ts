import { describe } from "vitest";
import { needs } from "../../../test/needs.ts";
import { describeContract } from "../testing/contract.ts";
import { listenUdp } from "../testing/scripted-server.ts";
import { Http3Target } from "./target.ts";
import { isPresent, startCaddy, useDriver, WHY_ABSENT } from "./testing/server.ts";

await useDriver();

describe("http3", needs(isPresent, WHY_ABSENT), () => {
  describeContract({
    name: "http3",
    calls: (port) => ({
      success: new Http3Target(`https://127.0.0.1:${port}`, { insecure: true }).get("/"),
      // Error statuses of HTTP have their own kind; see http3.test.ts.
      refused: null,
    }),
    real: {
      start: isPresent ? () => startCaddy() : null,
      absent: WHY_ABSENT,
      // Each connection of the driver has its own threads.
      users: 50,
      leakCalls: 900,
    },
    hostile: {
      listen: listenUdp,
      mute: null,
      // Datagrams that are not QUIC, or not sealed, are dropped silently.
      resets: false,
      half: null,
      rubbish: [],
      oversize: null,
      unreachable: "timeout",
    },
  });
});
