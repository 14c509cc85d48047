/** dnsmasq, a real DNS server for the tests. */

import { userInfo } from "node:os";
import type { CountingServer } from "../../testing/contract.ts";
import { findProgram, type ServerPackage, startServer } from "../../testing/real-server.ts";

export const DNSMASQ: ServerPackage = { program: "dnsmasq", package: "dnsmasq-base" };
const LOOK_MS = 20;
const POLLS_PER_SIGNAL = 100;
export const dnsmasqProgram = findProgram(DNSMASQ);

/** Serves some names of the domain test and NXDOMAIN for missing.test; forwards to no other server. */
export async function startDnsmasq(): Promise<CountingServer> {
  if (dnsmasqProgram === null) throw new Error("there is no dnsmasq");
  const server = await startServer({
    program: dnsmasqProgram,
    args: (port) => [
      ...["--keep-in-foreground", "--no-resolv", "--no-hosts", "--conf-file=/dev/null"],
      ...[`--port=${port}`, "--listen-address=127.0.0.1", "--bind-interfaces", "--pid-file="],
      ...[`--user=${userInfo().username}`, "--log-facility=-"],
      ...["--address=/fixed.test/10.1.2.3", "--address=/fixed.test/fd00::1"],
      ...["--address=/missing.test/", "--txt-record=text.test,hello,world"],
      ...["--mx-host=mail.test,mx.mail.test,10", "--srv-host=_x._tcp.test,host.test,99,1,2"],
    ],
  });
  const counts = (): readonly string[] =>
    [...server.output().matchAll(/queries answered locally (\d+)/g)].map(
      ([, count = "0"]) => count,
    );
  /**
   * dnsmasq writes its statistics on a signal, for UDP only, since child processes answer TCP. While it starts, it
   * listens but ignores the signal.
   */
  const served = async (): Promise<number> => {
    const before = counts().length;
    for (let polls = 0; counts().length === before; polls++) {
      if (polls % POLLS_PER_SIGNAL === 0) server.signal("SIGUSR1");
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
    return Number(counts().at(-1));
  };
  return { port: server.port, served, stop: server.stop };
}
