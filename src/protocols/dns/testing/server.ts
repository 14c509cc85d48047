/** A real DNS server for the tests: dnsmasq. */

import { userInfo } from "node:os";
import type { CountingServer } from "../../testing/contract.ts";
import { findProgram, type ServerPackage, startServer } from "../../testing/real-server.ts";

export const DNSMASQ: ServerPackage = { program: "dnsmasq", package: "dnsmasq-base" };
export const dnsmasqProgram = findProgram(DNSMASQ);

/** Knows some names of the domain test, and that there is no missing.test; asks nobody. */
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
  const figures = (): readonly string[] =>
    [...server.output().matchAll(/queries answered locally (\d+)/g)].map(
      ([, figure = "0"]) => figure,
    );
  /** It writes its figures down when it is told to; those of UDP, since TCP is answered by children. */
  const served = async (): Promise<number> => {
    const before = figures().length;
    server.signal("SIGUSR1");
    while (figures().length === before) await new Promise((resolve) => setTimeout(resolve, 20));
    return Number(figures().at(-1));
  };
  return { port: server.port, served, stop: server.stop };
}
