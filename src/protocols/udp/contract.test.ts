import { DNSMASQ, dnsmasqProgram, startDnsmasq } from "../dns/testing/server.ts";
import { describeContract } from "../testing/contract.ts";
import { absent } from "../testing/real-server.ts";
import { listenUdp } from "../testing/scripted-server.ts";
import { UdpTarget } from "./target.ts";

/** A query for the address of fixed.test: a DNS server answers datagrams. */
const QUESTION = Buffer.from("00070100000100000000000005666978656404746573740000010001", "hex");

describeContract({
  name: "udp",
  calls: (port) => {
    const target = new UdpTarget(`udp://127.0.0.1:${port}`);
    const match = (bytes: Buffer): boolean => bytes.readUInt16BE(0) === 7;
    return { success: target.request(QUESTION, { match }), refused: null };
  },
  real: {
    start: dnsmasqProgram === null ? null : startDnsmasq,
    absent: absent(DNSMASQ),
    // More at once overflow the server's buffer, and lost datagrams are not sent again.
    users: 100,
  },
  hostile: {
    listen: (onCall) => listenUdp((peer) => onCall(peer)),
    mute: null,
    resets: false,
    half: null,
    // Datagrams have no format of their own.
    rubbish: [],
    oversize: null,
  },
});
