/** Exchanges and probes between in-memory machines: each completes once, whatever the other side does. */

import { describe, expect, it } from "vitest";
import { Admission } from "../../../wire/admission.ts";
import { checksumAead } from "../../../wire/checksum-aead.ts";
import { PROBE_ANSWER } from "../../../wire/frame.ts";
import { KeyRing } from "../../../wire/key-ring.ts";
import type { StreamEnvelope } from "../../../wire/registry.ts";
import { PROTOCOL } from "../../../wire/version.ts";
import { millis } from "../../base/brand.ts";
import { address } from "../../base/ids.ts";
import { Random } from "../../base/random.ts";
import { type ExchangeResult, Exchanges } from "./exchanges.ts";
import { Pipes } from "./testing/pipes.ts";
import type { LinkEffect } from "./types.ts";

const TIMEOUT_MS = 1_000;
const LIMITS = { global: 0, high: 1, normal: 1, low: 1 };
const opened: StreamEnvelope = { name: "ledgerOpened", correlation: 7, value: { node: "b" } };
const batch: StreamEnvelope = { name: "ledgerBatch", correlation: 0, value: new Uint8Array(3) };

function ringOf(secret: string): KeyRing {
  const made = KeyRing.create(checksumAead, [secret], "");
  if (!made.ok) throw new Error(made.problem);
  return made.ring;
}

class Peer {
  readonly exchanges: Exchanges;
  readonly admission = new Admission(LIMITS);
  readonly results: ExchangeResult[] = [];
  readonly probed: boolean[] = [];
  readonly requests: number[] = [];
  readonly problems: string[] = [];
  readonly effects: LinkEffect[] = [];
  readonly at;
  now = 0;
  /** Disconnected: effects are recorded but not carried out. */
  silent = false;

  constructor(
    name: string,
    pipes: Pipes,
    over: { readonly secret?: string; readonly role?: "gate" | "worker" } = {},
  ) {
    this.at = address(`10.0.0.1:${name.charCodeAt(0)}`);
    const entropy = new Random(`entropy/${name}`);
    const side = pipes.add(this.at, (input) => this.exchanges.take(input, millis(this.now)));
    this.exchanges = new Exchanges(
      {
        hello: {
          ...{ cluster: "c", environment: "e", node: name, address: this.at, nodeVersion: "" },
          ...{ role: over.role ?? "gate", datacenter: "d", capabilities: [] },
          ...{ versionMajor: PROTOCOL.major, versionMinor: PROTOCOL.minor },
        },
        ring: ringOf(over.secret ?? "a-Secret-of-this-test-1"),
        entropy: (count) => Uint8Array.from({ length: count }, () => entropy.below(256)),
        compressor: { deflate: (bytes) => bytes, inflate: () => null },
        admission: this.admission,
        emit: (effect) => {
          this.effects.push(effect);
          if (!this.silent) pipes.run(side, effect);
        },
      },
      {
        onExchanged: (_exchange, _to, result) => this.results.push(result),
        onProbed: (_probe, answered) => this.probed.push(answered),
        onRequest: (request) => this.requests.push(request),
        onProblem: (_name, problem) => this.problems.push(problem),
      },
    );
  }

  ask(to: Peer): void {
    this.exchanges.ask(1, to.at, batch, TIMEOUT_MS, millis(this.now));
  }

  answer(): void {
    for (const request of this.requests.splice(0)) {
      this.exchanges.answer(request, opened, millis(this.now));
    }
  }

  tickAt(now: number): void {
    this.now = now;
    this.exchanges.tick(millis(now));
  }
}

function pair(over: { readonly secret?: string; readonly role?: "gate" | "worker" } = {}) {
  const pipes = new Pipes();
  return { pipes, a: new Peer("a", pipes), b: new Peer("b", pipes, over) };
}

describe("an exchange", () => {
  it("is one request and its reply, and leaves no state behind (FRAME-8)", () => {
    const { pipes, a, b } = pair();
    pipes.pieceBytes = 5;
    a.ask(b);
    pipes.settle();
    b.answer();
    pipes.settle();
    expect(a.results).toMatchObject([{ ok: true, reply: { name: "ledgerOpened" } }]);
    for (const peer of [a, b]) peer.tickAt(5_000);
    pipes.settle();
    expect([a.exchanges.nextDeadline(), b.exchanges.nextDeadline()]).toEqual([null, null]);
    expect([b.exchanges.counts.open, b.admission.stats("high").inFlight]).toEqual([0, 0]);
  });

  it("fails once at its deadline and ignores a late reply", () => {
    const { pipes, a, b } = pair();
    a.ask(b);
    pipes.settle();
    a.tickAt(TIMEOUT_MS);
    expect(a.results).toEqual([{ ok: false, refused: false, problem: "no reply in time" }]);
    b.answer();
    pipes.settle();
    a.tickAt(10_000);
    expect(a.results).toHaveLength(1);
    expect(b.admission.stats("high").inFlight).toBe(0);
  });

  it("is refused when nothing listens, and times out and closes the stream when a dial never completes", () => {
    const { pipes, a, b } = pair();
    a.exchanges.ask(1, address("10.0.0.9:1"), batch, TIMEOUT_MS, millis(0));
    pipes.settle();
    expect(a.results).toEqual([{ ok: false, refused: true, problem: "dial refused" }]);
    a.silent = true;
    a.ask(b);
    a.tickAt(TIMEOUT_MS);
    expect(a.results).toHaveLength(2);
    const { stream } = a.effects.at(-1) ?? { stream: null };
    expect(a.effects.at(-1)).toEqual({ kind: "destroy", stream });
    // The network opens the stream late: it is closed again.
    if (stream === null) throw new Error("a dial has a stream");
    const facts = { host: "10.0.0.1", peerUris: null };
    a.exchanges.take({ kind: "opened", stream, facts }, millis(a.now));
    expect(a.effects.at(-1)).toEqual({ kind: "destroy", stream });
  });

  it("under a different key fails with the most likely cause", () => {
    const { pipes, a, b } = pair({ secret: "quite-Another-secret-0815" });
    a.ask(b);
    pipes.settle();
    expect(a.results).toMatchObject([
      { ok: false, problem: expect.stringContaining("another secret, cluster or environment") },
    ]);
    expect(b.problems).toEqual(["a greeting under another key"]);
  });

  it("from a role without permission is refused with the reason, and keeps the connection", () => {
    const { pipes, a, b } = pair({ role: "worker" });
    a.ask(b);
    pipes.settle();
    expect(a.results).toMatchObject([{ ok: true, reply: { value: { code: "ROLE" } } }]);
    expect(b.requests).toEqual([]);
  });

  it("beyond the admission limit is refused with a retry delay (BEX-5)", () => {
    const { pipes, a, b } = pair();
    a.ask(b);
    a.ask(b);
    pipes.settle();
    expect(a.results).toMatchObject([
      { ok: true, reply: { value: { code: "BUSY", retryAfterMs: 1_000 } } },
    ]);
    b.answer();
    pipes.settle();
    expect(a.results[1]).toMatchObject({ ok: true, reply: { name: "ledgerOpened" } });
  });

  it("is released when its caller disconnects (BEX-3)", () => {
    const { pipes, a, b } = pair();
    a.ask(b);
    pipes.settle();
    expect(b.admission.stats("high").inFlight).toBe(1);
    pipes.breakAll();
    pipes.settle();
    expect(b.admission.stats("high").inFlight).toBe(0);
    expect(a.results).toEqual([{ ok: false, refused: false, problem: "the connection closed" }]);
    b.answer();
  });
});

describe("a probe", () => {
  it("is answered before any greeting, in pieces or whole", () => {
    const { pipes, a, b } = pair();
    pipes.pieceBytes = 1;
    a.exchanges.probe(1, b.at, TIMEOUT_MS, millis(0));
    pipes.settle();
    expect(a.probed).toEqual([true]);
  });

  it("counts as unanswered when refused, late, cut short or answered with other bytes", () => {
    const { pipes, a, b } = pair();
    a.exchanges.probe(1, address("10.0.0.9:1"), TIMEOUT_MS, millis(0));
    pipes.settle();
    a.silent = true;
    for (const last of ["tick", "closed", "bytes"] as const) {
      a.exchanges.probe(2, b.at, TIMEOUT_MS, millis(a.now));
      const { stream } = a.effects.at(-1) ?? {};
      if (stream === undefined) throw new Error("a probe dials");
      const bytes = Uint8Array.of(...PROBE_ANSWER, 1);
      if (last === "tick") a.tickAt(a.now + TIMEOUT_MS);
      else if (last === "closed") a.exchanges.take({ kind: "closed", stream }, millis(a.now));
      else a.exchanges.take({ kind: "bytes", stream, bytes }, millis(a.now));
    }
    expect(a.probed).toEqual([false, false, false, false]);
    expect(a.exchanges.nextDeadline()).toBeNull();
  });
});
