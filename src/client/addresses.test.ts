import { describe, expect, it } from "vitest";
import { placesIn, resolveNames } from "./addresses.ts";
import { ClusterClient } from "./client.ts";

const HOSTS: Readonly<Record<string, readonly string[]>> = {
  localhost: ["127.0.0.1", "::1"],
  "gate.example": ["10.0.0.1", "127.0.0.1"],
};

async function find(host: string): Promise<readonly string[]> {
  const found = HOSTS[host];
  if (found !== undefined) return found;
  const code = host.startsWith("later") ? "EAI_AGAIN" : "ENOTFOUND";
  throw Object.assign(new Error(`getaddrinfo ${code} ${host}`), { code });
}

const forever = (): Promise<never> => new Promise(() => undefined);

describe("host names of gates and managers", () => {
  it("are distinguished from numeric addresses", () => {
    expect(placesIn(["10.0.0.1:7700", "[::1]:7700", "localhost:9400"])).toEqual({
      numeric: ["10.0.0.1:7700", "[::1]:7700"],
      names: [{ host: "localhost", port: 9400 }],
    });
  });

  it.each([
    ["localhost", '"localhost" has no port: write localhost:PORT'],
    ["10.0.0.1", "has no port"],
    ["a b:1", '"a b:1" is not an address'],
    ["localhost:70000", "has port 70000"],
  ])("are rejected as %s before any lookup", (text, problem) => {
    expect(() => placesIn([text])).toThrow(problem);
  });

  it("resolve to all their addresses, each once", async () => {
    const { names } = placesIn(["localhost:9400", "gate.example:9400", "typo.example:9400"]);
    const found = await resolveNames(names, forever, find);
    expect(found).toEqual(["127.0.0.1:9400", "[::1]:9400", "10.0.0.1:9400"]);
  });

  it("that do not resolve are named, and an unavailable name server is no mistake", async () => {
    const failing = (text: string) => resolveNames(placesIn([text]).names, forever, find);
    await expect(failing("typo.example:9400")).rejects.toMatchObject({
      message:
        'the host name "typo.example" has no address (no such host); check it, or write a numeric address',
      reason: "invalid",
    });
    await expect(failing("later.example:9400")).rejects.toMatchObject({
      message: expect.stringContaining('"later.example" has no address (EAI_AGAIN)'),
      isPassing: true,
    });
  });

  it("time out when no name server answers", async () => {
    const { names } = placesIn(["slow.example:9400"]);
    const found = resolveNames(names, async () => undefined, forever);
    await expect(found).rejects.toThrow("no name server answered for slow.example within 5 s");
  });

  it("are resolved by a client before it connects", async () => {
    const secret = "gh7Kq2-vT9xLw4Zm";
    // Too long for a name server query.
    const host = `${"h".repeat(64)}.invalid`;
    const client = ClusterClient.open({ managers: [`${host}:9400`], secret });
    try {
      await expect(client.jobs()).rejects.toThrow(`the host name "${host}"`);
    } finally {
      await client.close();
    }
  });
});
