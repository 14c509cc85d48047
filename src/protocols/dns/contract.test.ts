import { describeContract } from "../testing/contract.ts";
import { absent } from "../testing/real-server.ts";
import { listenUdp } from "../testing/scripted-server.ts";
import { encodeQuery } from "./message.ts";
import { DnsTarget } from "./target.ts";
import { DNSMASQ, dnsmasqProgram, startDnsmasq } from "./testing/server.ts";

/** A response without a message id, which the server below fills in. */
function answer(change: (bytes: Buffer) => Buffer): Buffer {
  const bytes = encodeQuery("fixed.test", "A", true);
  bytes[2] = 0x81;
  return change(bytes);
}

describeContract({
  name: "dns",
  calls: (port) => {
    const target = new DnsTarget(`dns://127.0.0.1:${port}`);
    return {
      success: target.query("fixed.test"),
      refused: { call: target.query("missing.test"), code: "NXDOMAIN" },
    };
  },
  real: {
    start: dnsmasqProgram === null ? null : startDnsmasq,
    absent: absent(DNSMASQ),
    // More at once overflow the server's buffer, and lost datagrams are not sent again.
    users: 100,
  },
  hostile: {
    listen: (onCall) =>
      listenUdp((peer, query) => {
        const write = (bytes: Uint8Array): void => {
          const numbered = Buffer.from(bytes);
          if (numbered.length >= 12) query.copy(numbered, 0, 0, 2);
          peer.write(numbered);
        };
        onCall({ ...peer, write });
      }),
    mute: null,
    resets: false,
    half: null,
    rubbish: [
      Buffer.of(1),
      // A query instead of a response.
      encodeQuery("fixed.test", "A", true),
      // A record count without the record.
      answer((bytes) => Buffer.concat([bytes.subarray(0, 7), Buffer.of(1), bytes.subarray(8)])),
      // A name that points to itself.
      answer((bytes) => Buffer.concat([bytes.subarray(0, 12), Buffer.of(0xc0, 12, 0, 1, 0, 1)])),
      // A label that is longer than the message.
      answer((bytes) => Buffer.concat([bytes.subarray(0, 12), Buffer.of(60, 97)])),
    ],
    oversize: null,
  },
});
