import { describe, expect, it } from "vitest";
import { checksumAead } from "../../../wire/checksum-aead.ts";
import { KeyRing } from "../../../wire/key-ring.ts";
import { CAPABILITIES, PROTOCOL } from "../../../wire/version.ts";
import { type Millis, millis } from "../../base/brand.ts";
import { address } from "../../base/ids.ts";
import { Random } from "../../base/random.ts";
import type { LinkInput, StreamId } from "../link/types.ts";
import { type ClientEffect, type ClientInput, ClientProcess } from "./client-process.ts";

const ONE = address("10.0.0.1:7700");
const TWO = address("10.0.0.2:7700");
const TIMEOUT_MS = 5_000;
const FACTS = { host: "10.0.0.1", peerUris: null };

/** Outcome of a dial: the inputs that follow it, in order. */
type Fate = (stream: StreamId) => readonly LinkInput[];
const CLOSED_UNANSWERED: Fate = (stream) => [
  { kind: "opened", stream, facts: FACTS },
  { kind: "closed", stream },
];
const HTTP_ANSWERS: Fate = (stream) => [
  { kind: "opened", stream, facts: FACTS },
  { kind: "bytes", stream, bytes: new TextEncoder().encode("HTTP/1.1 400 Bad Request\r\n") },
];
const NOBODY_LISTENS: Fate = (stream) => [{ kind: "dialFailed", stream, refused: true }];

function clientOf(): ClientProcess {
  const made = KeyRing.create(checksumAead, ["gh7Kq2-vT9xLw4Zm"], "test/client");
  if (!made.ok) throw new Error(made.problem);
  const hello = {
    ...{ cluster: "c", environment: "e", nodeVersion: "0", datacenter: "" },
    ...{ role: "client" as const, node: "client-1", address: "", capabilities: CAPABILITIES },
    ...{ versionMajor: PROTOCOL.major, versionMinor: PROTOCOL.minor },
  };
  const compressor = { deflate: (bytes: Uint8Array) => bytes, inflate: () => null };
  const entropy = (count: number): Uint8Array => new Uint8Array(count).fill(7);
  const options = { ...{ hello, managers: [ONE, TWO], compressor, entropy }, ring: made.ring };
  return new ClientProcess(options, new Random("client"));
}

/** Asks once and advances time until the request completes; returns that time. */
function answeredAt(client: ClientProcess, fates: Readonly<Record<string, Fate>>): Millis {
  let now = millis(0);
  let answered: Millis | null = null;
  const push = (input: ClientInput): void => {
    for (const effect of client.step(input, now)) onEffect(effect);
  };
  const onEffect = (effect: ClientEffect): void => {
    if (effect.kind === "answered") answered = now;
    if (effect.kind === "dial")
      for (const input of fates[effect.to]?.(effect.stream) ?? []) push(input);
  };
  push({ kind: "start" });
  const message = { name: "clientRequest", correlation: 0, value: { kind: "nodes" } } as const;
  push({ kind: "ask", id: 1, to: null, message, timeoutMs: TIMEOUT_MS });
  while (answered === null) {
    now = client.nextDeadline() ?? now;
    push({ kind: "tick" });
  }
  return answered;
}

describe("a client", () => {
  it("fails early when the handshake is rejected repeatedly", () => {
    const client = clientOf();
    const at = answeredAt(client, { [ONE]: CLOSED_UNANSWERED, [TWO]: NOBODY_LISTENS });
    expect(at).toBeGreaterThanOrEqual(2_000);
    expect(at).toBeLessThan(TIMEOUT_MS);
    expect(client.isRefused).toBe(true);
    expect(client.problems()[0]).toContain("most likely it has another secret");
  });

  it("fails early when another service answers", () => {
    const client = clientOf();
    const at = answeredAt(client, { [ONE]: HTTP_ANSWERS, [TWO]: NOBODY_LISTENS });
    expect(at).toBeLessThan(TIMEOUT_MS);
    expect(client.isRefused).toBe(true);
    const reason = 'something else than Hyperscale is there: it began with "HTTP"';
    expect(client.problems()[0]).toBe(`${ONE}: ${reason}`);
  });

  it("waits for servers that do not listen yet", () => {
    const client = clientOf();
    const at = answeredAt(client, { [ONE]: NOBODY_LISTENS, [TWO]: NOBODY_LISTENS });
    expect(at).toBe(TIMEOUT_MS);
    expect(client.isRefused).toBe(false);
  });

  it("does not mistake a server that exits during the greeting for one that rejects it", () => {
    const client = clientOf();
    let dials = 0;
    const restarting: Fate = (stream) =>
      ++dials % 3 === 0 ? CLOSED_UNANSWERED(stream) : NOBODY_LISTENS(stream);
    expect(answeredAt(client, { [ONE]: restarting, [TWO]: NOBODY_LISTENS })).toBe(TIMEOUT_MS);
    expect(client.isRefused).toBe(false);
  });
});
