import { describe, expect, it } from "vitest";
import { originCoordinate, VIVALDI_DEFAULTS } from "../vivaldi/estimator.ts";
import { alive, at, Bench, id, inc, record, suspect } from "./testing/bench.ts";

const peers = ["a", "b", "c", "d", "e"];

/** One round that fails for `victim`: everyone else answers, helpers respond with `help`. */
function failOnce(bench: Bench, victim: string, help: "nack" | "ack" | "silent"): void {
  const answer = bench.answering(...peers.filter((name) => name !== victim));
  for (let i = 0; i < 400 && bench.status(victim) === "alive"; i++) {
    bench.advance(50, (sent) => {
      if (bench.status(victim) === "alive") answer(sent);
      const { message } = sent.packet;
      if (message.kind !== "pingRequest" || help === "silent") return;
      const helper = peers.find((name) => at(name) === sent.to) ?? "a";
      const { sequence, target } = message;
      if (help === "nack") bench.receive(helper, { kind: "nack", sequence, target });
      else bench.receive(helper, { kind: "ack", sequence, target, relayed: true, rttMs: 0 });
    });
    if (help === "ack" && bench.sent("pingRequest").length > 0) return;
  }
}

describe("strangers", () => {
  it("do not use up a suspicion's sends to members", () => {
    const bench = new Bench().meet(...peers);
    const names = Array.from({ length: 60 }, (_, number) => `nobody${number}`);
    for (let from = 0; from < names.length; from += 6) {
      const some = names.slice(from, from + 6).map((name) => alive(name, 1));
      bench.receive("a", { kind: "gossip" }, some);
    }
    bench.advance(3_000, bench.answering(...peers));
    bench.receive("b", { kind: "gossip" }, [suspect("c", 1, "b")]);
    bench.advance(3_000, bench.answering(...peers));
    const members = new Set(peers.map(at));
    const sent = (["gossip", "ping", "ack"] as const)
      .flatMap((kind) => bench.sent(kind))
      .filter(({ to, packet }) => {
        return members.has(to) && packet.updates.some((one) => one.kind === "suspect");
      });
    expect(sent.length).toBeGreaterThanOrEqual(8);
  });
});

describe("local health", () => {
  it("B-10: a successful probe removes a point", () => {
    const bench = new Bench().meet(...peers);
    bench.step({ kind: "lag", lagMs: 400 });
    expect(bench.swim.healthScore).toBe(1);
    bench.advance(2_500, bench.answering(...peers));
    expect(bench.swim.healthScore).toBe(0);
  });

  it("B-11: a failed probe with all nacks leaves the score unchanged", () => {
    const bench = new Bench().meet(...peers);
    failOnce(bench, "c", "nack");
    expect(bench.status("c")).toBe("suspect");
    expect(bench.swim.healthScore).toBe(0);
  });

  it("B-12: each missing nack adds a point", () => {
    const bench = new Bench().meet(...peers);
    failOnce(bench, "c", "silent");
    expect(bench.status("c")).toBe("suspect");
    expect(bench.swim.healthScore).toBe(3);
  });

  it("B-13: a failed probe without helpers adds one point", () => {
    const bench = new Bench().meet("a");
    bench.advance(3_000);
    expect(bench.status("a")).toBe("suspect");
    expect(bench.swim.healthScore).toBe(1);
  });

  it("B-14: refuting an accusation adds a point", () => {
    const bench = new Bench().meet(...peers);
    bench.receive("a", { kind: "gossip" }, [suspect("me", 1, "b")]);
    expect(bench.swim.healthScore).toBe(1);
  });

  it("B-15: a degraded member's rounds last longer, and rounds never overlap", () => {
    const bench = new Bench().meet(...peers);
    bench.step({ kind: "lag", lagMs: 400 });
    bench.clear();
    const started: number[] = [];
    let open = 0;
    bench.advance(30_000, (sent) => {
      if (sent.packet.message.kind !== "ping") return;
      started.push(bench.now);
      open = Math.max(open, 1);
    });
    const gaps = started.slice(1).map((time, index) => time - (started[index] ?? 0));
    // No member answers: the score only rises, so every gap is at least twice the interval.
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(2_000);
  });

  it("without Lifeguard the score stays at zero", () => {
    const bench = new Bench({ config: { lifeguard: false } }).meet(...peers);
    failOnce(bench, "c", "silent");
    bench.receive("a", { kind: "gossip" }, [suspect("me", 1, "b")]);
    expect(bench.swim.healthScore).toBe(0);
  });
});

describe("probing", () => {
  it("B-16: every live member once per round, in a new order each round; the dead and the left are skipped", () => {
    const bench = new Bench().meet(...peers, "gone", "buried");
    bench.receive("a", { kind: "gossip" }, [
      { kind: "left", id: id("gone"), incarnation: inc(1), from: id("gone") },
    ]);
    bench.receive("a", { kind: "gossip" }, [
      { kind: "dead", id: id("buried"), incarnation: inc(1), from: id("a") },
    ]);
    bench.clear();
    bench.advance(40_500, bench.answering(...peers));
    const targets = bench.sent("ping").map(({ message }) => message.target as string);
    expect(targets.length).toBeGreaterThanOrEqual(39);
    expect(targets).not.toContain("gone");
    expect(targets).not.toContain("buried");
    expect(targets).not.toContain("me");
    const counts = peers.map((name) => targets.filter((target) => target === name).length);
    expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
    const rounds = [0, 1, 2, 3].map((round) => targets.slice(round * 5 + 1, round * 5 + 6).join());
    expect(new Set(rounds).size).toBeGreaterThan(1);
  });

  it("B-16: a newcomer enters at a random place of the order", () => {
    const places = Array.from({ length: 12 }, (_, seed) => {
      const bench = new Bench({ seed }).meet(...peers);
      bench.advance(1_500, bench.answering(...peers));
      bench.meet("new").clear();
      bench.advance(12_000, bench.answering(...peers, "new"));
      return bench.sent("ping").findIndex(({ message }) => message.target === id("new"));
    });
    expect(new Set(places).size).toBeGreaterThan(3);
  });

  it("B-17: no ack: helpers are asked, then the member is suspected", () => {
    const bench = new Bench().meet(...peers);
    failOnce(bench, "b", "nack");
    const asked = bench.sent("pingRequest").filter(({ message }) => message.target === id("b"));
    expect(asked).toHaveLength(3);
    expect(asked.map(({ to }) => to)).not.toContain(at("b"));
    expect(bench.changes("suspect").map(({ member }) => member.id)).toEqual([id("b")]);
  });

  it("B-17: a relayed ack means alive: slow, not dead (C20-3)", () => {
    const bench = new Bench().meet(...peers);
    failOnce(bench, "b", "ack");
    bench.advance(600);
    expect(bench.status("b")).toBe("alive");
  });

  it("B-18: the ping to a suspect carries the suspicion, and the suspect refutes", () => {
    const bench = new Bench().meet(...peers);
    bench.receive("a", { kind: "gossip" }, [suspect("c", 1, "a")]);
    bench.clear();
    bench.advance(6_000, bench.answering("a", "b", "d", "e"));
    const ping = bench.sent("ping").find(({ message }) => message.target === id("c"));
    expect(ping?.packet.updates).toContainEqual(suspect("c", 1, "me"));
    const accused = new Bench().meet(...peers).clear();
    accused.receive("a", { kind: "ping", sequence: 9, target: id("me") }, [suspect("me", 1, "a")]);
    const [ack] = accused.sent("ack");
    const answer = ack?.packet.updates.find((update) => update.kind === "alive");
    expect(answer).toMatchObject({ incarnation: 2, node: { id: "me" } });
  });

  it("B-19: the fallback stream answers: not suspected, and warned about", () => {
    const bench = new Bench().meet("a", "b");
    const answer = bench.answering("b");
    bench.advance(8_000, (sent) => {
      answer(sent);
      for (const effect of bench.effects) {
        if (effect.kind !== "openStream" || effect.packet.message.kind !== "streamPing") continue;
        const { sequence } = effect.packet.message;
        const packet = bench.streamPacket("a", { kind: "streamAck", sequence });
        bench.step({ kind: "streamReply", exchange: effect.exchange, packet });
      }
      bench.clear();
    });
    expect(bench.status("a")).toBe("alive");
    expect(bench.swim.snapshot().counts.streamFallbacks).toBeGreaterThan(0);
  });

  it("B-19: a refused stream ends the round at once, without blame on our own health", () => {
    const bench = new Bench().meet("a", "b");
    const answer = bench.answering("b");
    let suspectedAfter = 0;
    let pinged = 0;
    bench.advance(4_000, (sent) => {
      answer(sent);
      if (sent.packet.message.kind === "ping" && sent.to === at("a")) pinged = bench.now;
      for (const effect of bench.effects.splice(0)) {
        if (effect.kind !== "openStream" || bench.status("a") !== "alive") continue;
        bench.step({ kind: "streamFailed", exchange: effect.exchange, refused: true });
        suspectedAfter = bench.now - pinged;
      }
    });
    expect(bench.status("a")).toBe("suspect");
    expect(suspectedAfter).toBeLessThan(700);
    expect(bench.swim.healthScore).toBe(0);
  });

  it("B-20: fallback streams can be switched off", () => {
    const bench = new Bench({ config: { streamPings: false } }).meet("a", "b");
    bench.advance(5_000);
    expect(
      bench.effects.some(
        (effect) => effect.kind === "openStream" && effect.packet.message.kind === "streamPing",
      ),
    ).toBe(false);
    expect(bench.status("a")).toBe("suspect");
  });

  it("B-21: a ping that names another is not answered, on datagrams and on streams", () => {
    const bench = new Bench().meet("a").clear();
    bench.receive("a", { kind: "ping", sequence: 5, target: id("other") });
    expect(bench.sent("ack")).toEqual([]);
    const packet = bench.streamPacket("a", {
      kind: "streamPing",
      sequence: 5,
      target: id("other"),
    });
    bench.step({ kind: "streamRequest", connection: 3, packet });
    expect(bench.effects.at(-1)).toMatchObject({
      kind: "answerStream",
      packet: { message: { kind: "streamRefusal", code: "NOT_ME" } },
    });
  });

  it("B-22: an indirect ping relays the ack, or sends a nack before the origin's deadline", () => {
    const bench = new Bench().meet("a", "b", "c").clear();
    const request = {
      kind: "pingRequest",
      sequence: 77,
      target: id("b"),
      targetAddress: at("b"),
    } as const;
    bench.receive("a", request);
    const [ping] = bench.sent("ping");
    expect(ping?.to).toBe(at("b"));
    bench.receive("b", {
      kind: "ack",
      sequence: ping?.message.sequence ?? 0,
      target: id("b"),
      relayed: false,
      rttMs: 0,
    });
    expect(bench.sent("ack").at(-1)).toMatchObject({
      to: at("a"),
      message: { sequence: 77, relayed: true },
    });
    bench.clear().receive("a", { ...request, sequence: 78 });
    const before = bench.now;
    while (bench.sent("nack").length === 0 && bench.now < before + 2_000) bench.advance(10);
    // The origin pinged for half a second and has half a second left.
    expect(bench.now - before).toBeLessThan(500);
    expect(bench.sent("nack")[0]).toMatchObject({ to: at("a"), message: { sequence: 78 } });
  });

  it("B-23: late, repeated and unknown acks and nacks are ignored and counted (UDP-6)", () => {
    const bench = new Bench().meet(...peers);
    const ack = (sequence: number) =>
      ({ kind: "ack", sequence, target: id("a"), relayed: false, rttMs: 0 }) as const;
    bench.receive("a", ack(4_711));
    bench.receive("a", { kind: "nack", sequence: 4_711, target: id("a") });
    expect(bench.swim.snapshot().counts.unknownReplies).toBe(2);
    bench.clear().advance(1_100, bench.answering(...peers));
    const [ping] = bench.sent("ping");
    bench.receive(ping?.message.target ?? "a", ack(ping?.message.sequence ?? 0));
    expect(bench.swim.snapshot().counts.unknownReplies).toBe(3);
    expect(bench.swim.sizes()).toMatchObject({ relays: 0 });
  });

  it("B-24: a local send error is a failed probe at once; errors towards others are not", () => {
    const bench = new Bench().meet(...peers).clear();
    while (bench.sent("ping").length === 0) bench.advance(50);
    const [ping] = bench.sent("ping");
    const others = peers.map(at).filter((address) => address !== ping?.to);
    bench.step({ kind: "sendFailed", to: others[0] ?? at("a") });
    expect(bench.sent("pingRequest")).toEqual([]);
    bench.step({ kind: "sendFailed", to: ping?.to ?? at("a") });
    expect(bench.sent("pingRequest").length).toBeGreaterThan(0);
  });

  /** Answers a ping of ours after `afterMs`, from a peer that reports `reportedMs` as its own measurement. */
  function answerAfter(bench: Bench, afterMs: number, reportedMs: number): void {
    bench.clear();
    while (bench.sent("ping").length === 0) bench.advance(10);
    const sequence = bench.sent("ping")[0]?.message.sequence ?? 0;
    bench.now += afterMs;
    const ack = {
      kind: "ack",
      sequence,
      target: id("a"),
      relayed: false,
      rttMs: reportedMs,
    } as const;
    const packet = {
      ...{ from: id("a"), fromAddress: at("a"), incarnation: inc(1), message: ack },
      ...{ coordinate: originCoordinate(VIVALDI_DEFAULTS), state: null, updates: [] },
    };
    bench.step({ kind: "datagram", source: at("a"), packet });
  }

  // AD-35.3
  it("B-25: the round trip is taken from the receive time and moves the coordinate", () => {
    const bench = new Bench().meet("a").clear();
    answerAfter(bench, 40, 0);
    const measured = bench.swim.look(id("a"))?.rttMs ?? 0;
    expect(measured).toBeGreaterThanOrEqual(40);
    expect(measured).toBeLessThan(51);
    expect(bench.swim.snapshot().coordinate.sampleCount).toBe(1);
  });

  it("the asking member measures by its own clock; an answer carries what the other has measured (AD-35.4)", () => {
    const [one, other] = [0, 9_999].map((reportedMs) => {
      const bench = new Bench().meet("a").clear();
      answerAfter(bench, 40, reportedMs);
      return bench;
    });
    if (one === undefined || other === undefined) throw new Error("there are two");
    const measured = one.swim.look(id("a"))?.rttMs;
    expect(other.swim.look(id("a"))?.rttMs).toBe(measured);
    expect(other.swim.snapshot().coordinate).toEqual(one.swim.snapshot().coordinate);
    one.clear().receive("a", { kind: "ping", sequence: 7, target: id("me") });
    expect(one.sent("ack").map(({ message }) => message.rttMs)).toEqual([measured]);
    const stranger = new Bench().meet("a").clear();
    stranger.receive("a", { kind: "ping", sequence: 7, target: id("me") });
    expect(stranger.sent("ack").map(({ message }) => message.rttMs)).toEqual([0]);
  });

  it("helpers are gates and managers; workers only if there are no others (SWIM-3)", () => {
    const bench = new Bench();
    for (const name of ["w1", "w2", "w3", "w4"]) {
      bench.receive(name, { kind: "gossip" }, [
        { kind: "alive", node: record(name, "worker"), incarnation: inc(1) },
      ]);
    }
    bench.meet("m1", "m2").clear();
    bench.advance(20_000, bench.answering("m1", "m2"));
    const helpers = new Set(bench.sent("pingRequest").map(({ to }) => to));
    expect([...helpers].every((to) => to.startsWith("m"))).toBe(true);
    const workers = new Bench();
    for (const name of ["w1", "w2", "w3"]) {
      workers.receive(name, { kind: "gossip" }, [
        { kind: "alive", node: record(name, "worker"), incarnation: inc(1) },
      ]);
    }
    workers.clear().advance(5_000);
    expect(workers.sent("pingRequest").length).toBeGreaterThan(0);
  });

  it("a stalled loop judges nothing by what it missed (WHEEL-7)", () => {
    const bench = new Bench().meet(...peers);
    while (bench.sent("ping").length === 0) bench.advance(20);
    bench.receive("a", { kind: "gossip" }, [suspect("e", 1, "a"), suspect("e", 1, "b")]);
    bench.now += 60_000;
    bench.step({ kind: "tick" });
    expect(bench.changes("failed")).toEqual([]);
    expect(bench.changes("suspect").map(({ member }) => member.id)).toEqual([id("e")]);
    expect(bench.swim.healthScore).toBeGreaterThan(0);
    bench.receive("b", { kind: "gossip" }, [alive("e", 2)]);
    bench.advance(60_000, bench.answering(...peers));
    expect(bench.changes("failed").filter(({ member }) => member.id === id("e"))).toEqual([]);
  });
});
