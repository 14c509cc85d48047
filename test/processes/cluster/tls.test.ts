/** Agents whose streams are mutual TLS: certificates decide membership. */

import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { AgentCluster, AgentProcess, freshNet, until } from "../../../bench/swim/agents.ts";
import { needs } from "../../needs.ts";
import { PATIENCE_MS } from "../../patience.ts";
import { Authority, type CertificateFiles, hasOpenssl, NO_OPENSSL } from "./certificates.ts";

describe("agents with certificates", needs(hasOpenssl, NO_OPENSSL), () => {
  const cluster = new AgentCluster({ net: freshNet(), size: 0, profile: "dc" });
  afterAll(() => cluster.stop());

  const flags = ({ cert, key, ca }: CertificateFiles): string[] => [
    ...["--tls-cert", cert, "--tls-key", key, "--tls-ca", ca, "--no-tls-verify-hostname"],
  ];
  const start = (place: number, name: string, args: readonly string[]): AgentProcess => {
    const agent = new AgentProcess(name, cluster.host(place), [
      ...["--profile", "dc", "--secret-file", cluster.secretFile, "--log-level", "warn"],
      ...[
        "--join",
        `${cluster.host(1)}:7946`,
        "--data-dir",
        join(cluster.directory, name),
        ...args,
      ],
    ]);
    cluster.agents.push(agent);
    return agent;
  };

  it("join when their certificates match their claims, and only then", async () => {
    const authority = new Authority(cluster.directory);
    const sign = (role: string): string[] => flags(authority.sign(role, "hyperscale", "default"));
    const first = start(1, "n1", sign("worker"));
    await until(() => first.events.length > 0, PATIENCE_MS, "the first is up");
    start(2, "n2", sign("worker"));
    await cluster.converged();

    const liar = start(3, "liar", [...sign("worker"), "--role", "manager"]);
    const bare = start(4, "bare", []);
    await until(() => liar.events.length > 0 && bare.events.length > 0, PATIENCE_MS, "they are up");
    await until(
      () => liar.stderr.includes('role \\"manager\\" but the certificate says \\"worker\\"'),
      PATIENCE_MS,
      "the liar is told why",
    );
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    const names = (await first.members()).map(({ name }) => name).sort();
    expect(names).toEqual(["n1", "n2"]);
  });
});
