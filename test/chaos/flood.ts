/**
 * `npm run chaos:flood`: rubbish poured on one member's port as fast as this machine can, 10 s long. The
 * agent must stay up, its memory bounded, and the members must stay members.
 *
 *     npm run chaos:flood -- --seconds 10 --senders 2
 */

import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import {
  AgentCluster,
  type AgentProcess,
  freshNet,
  residentBytes,
} from "../../bench/swim/agents.ts";

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "10" },
    senders: { type: "string", default: "2" },
    profile: { type: "string", default: "lan" },
    size: { type: "string", default: "5" },
  },
});
const sender = fileURLToPath(new URL("flood-sender.ts", import.meta.url));
const MIB = 1_048_576;
const RESIDENT_MAX = 400 * MIB;

function pour(kind: string, host: string): Promise<number> {
  const args = ["--import", "tsx", sender, kind, host, "7946", values.seconds];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  child.stdout.on("data", (chunk: Buffer) => {
    text += chunk.toString();
  });
  return new Promise((resolve) => child.once("exit", () => resolve(Number(text))));
}

const cluster = new AgentCluster({
  net: freshNet(),
  size: Number(values.size),
  profile: values.profile,
});
try {
  await cluster.startAll();
  const target = cluster.agents[1] as AgentProcess;
  const since = performance.now();
  const residents: number[] = [residentBytes(target.pid)];
  const watch = setInterval(() => residents.push(residentBytes(target.pid)), 200);
  const host = cluster.host(2);
  const senders = Number(values.senders);
  const [streamed = 0, ...datagrams] = await Promise.all([
    pour("tcp", host),
    ...Array.from({ length: senders }, () => pour("udp", host)),
  ]);
  const perSecond = (bytes: number): string =>
    `${(bytes / 1e9 / Number(values.seconds)).toFixed(2)} GB/s`;
  const inDatagrams = datagrams.reduce((sum, bytes) => sum + bytes, 0);
  await new Promise((resolve) => setTimeout(resolve, 5_000));
  clearInterval(watch);
  const failures = cluster.agents.flatMap((agent) => agent.failuresSince(since));
  const suspicions = cluster.agents.flatMap((agent) =>
    agent.events.filter(({ event, seenAt }) => event === "member-suspect" && seenAt >= since),
  );
  const agreed = await cluster.agrees();
  const resident = Math.max(...residents);
  const heard = await target.metric("datagrams_received_total");
  process.stdout.write(
    [
      `poured for ${values.seconds} s: ${perSecond(inDatagrams)} in datagrams, ${perSecond(streamed)} in streams`,
      `the agent read ${heard} datagrams; resident ${Math.round((residents[0] ?? 0) / MIB)} MiB before, ` +
        `at most ${Math.round(resident / MIB)} MiB during`,
      `suspicions ${suspicions.length}, members declared dead ${failures.length}, all agree: ${agreed}`,
      "",
    ].join("\n"),
  );
  const fine = target.running && failures.length === 0 && agreed && resident < RESIDENT_MAX;
  process.exitCode = fine ? 0 : 1;
} finally {
  await cluster.stop();
}
