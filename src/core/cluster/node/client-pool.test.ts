import { describe, expect, it } from "vitest";
import { checksumAead } from "../../../wire/checksum-aead.ts";
import type { Hello } from "../../../wire/hello.ts";
import { KeyRing } from "../../../wire/key-ring.ts";
import { CAPABILITIES, PROTOCOL } from "../../../wire/version.ts";
import { millis } from "../../base/brand.ts";
import { address } from "../../base/ids.ts";
import { Random } from "../../base/random.ts";
import { QUEUE_LIMITS } from "../link/limits.ts";
import { type Incoming, Links } from "../link/links.ts";
import { NOT_UNDERSTOOD, refusalOf } from "../link/refusal.ts";
import { LINK_RULES } from "../link/rules.ts";
import { Pipes } from "../link/testing/pipes.ts";
import type { ClientRequest } from "../messages.ts";
import { type ClientInput, ClientProcess } from "./client-process.ts";

const TIMEOUT_MS = 5_000;
const NOT_UNDERSTOOD_HERE = "this message is not understood here";
const compressor = { deflate: (bytes: Uint8Array) => bytes, inflate: () => null };
const drawn = new Random("entropy");
const entropy = (count: number): Uint8Array =>
  Uint8Array.from({ length: count }, () => drawn.below(256));

function ring(): KeyRing {
  const made = KeyRing.create(checksumAead, ["gh7Kq2-vT9xLw4Zm"], "test/pool");
  if (!made.ok) throw new Error(made.problem);
  return made.ring;
}

function hello(node: string, role: Hello["role"], datacenter: string): Hello {
  return {
    ...{ cluster: "c", environment: "e", nodeVersion: "0", datacenter, node, role },
    ...{ versionMajor: PROTOCOL.major, versionMinor: PROTOCOL.minor, address: "" },
    capabilities: CAPABILITIES.filter((one) => one !== "compression"),
  };
}

/** A client and gates of several regions. Gates in `silent` do not answer. */
class World {
  now = millis(0);
  readonly silent = new Set<string>();
  /** Gates that were asked, in order. */
  readonly asked: string[] = [];
  /** Outcome of each request, in order of completion. */
  readonly answers: {
    readonly id: number;
    readonly outcome: string | null;
    readonly at: number;
  }[] = [];
  /** Whether gates omit the correlation of a refused message, as earlier versions do. */
  isUnspecific = false;
  readonly client: ClientProcess;
  readonly #pipes = new Pipes();
  readonly #side: ReturnType<Pipes["add"]>;
  #ids = 1;

  constructor(near: string, gates: Readonly<Record<string, string>>) {
    for (const [name, region] of Object.entries(gates)) this.#gate(name, region);
    const managers = Object.keys(gates).map((name) => address(`${name}:7700`));
    const options = { hello: hello("client-1", "client", near), managers, compressor, entropy };
    this.client = new ClientProcess({ ...options, ring: ring() }, new Random("client"));
    this.#side = this.#pipes.add("client", (input) => this.push(input));
    this.push({ kind: "start" });
    this.#pipes.settle();
  }

  push(input: ClientInput): void {
    for (const effect of this.client.step(input, this.now)) {
      if (effect.kind === "answered") {
        const { answer, id } = effect;
        const outcome = answer?.name === "refusal" ? answer.value.text : (answer?.name ?? null);
        this.answers.push({ id, outcome, at: this.now });
      } else if (effect.kind !== "link") this.#pipes.run(this.#side, effect);
    }
  }

  ask(value: ClientRequest = { kind: "nodes" }): string {
    const message = { name: "clientRequest", correlation: 0, value } as const;
    this.push({ kind: "ask", id: ++this.#ids, to: null, message, timeoutMs: TIMEOUT_MS });
    this.#pipes.settle();
    return this.asked.at(-1) ?? "";
  }

  run(ms: number): void {
    for (const end = this.now + ms; this.now < end; ) {
      this.now = millis(Math.min(end, this.now + 100));
      this.push({ kind: "tick" });
      this.#pipes.settle();
    }
  }

  #gate(name: string, region: string): void {
    const side = this.#pipes.add(`${name}:7700`, (input) => links.take(input, this.now));
    const links: Links = new Links(
      {
        ...{ hello: hello(name, "gate", region), ring: ring(), entropy, compressor },
        ...{ limits: QUEUE_LIMITS, rules: LINK_RULES },
        emit: (effect) => this.#pipes.run(side, effect),
      },
      {
        ...{ refusePeer: () => null, refuseOpened: () => null, onPush: () => undefined },
        opening: () => ({
          name: "opened",
          correlation: 1,
          value: { manager: name, addresses: [] },
        }),
        ...{ onSent: () => undefined, onUp: () => undefined, onDown: () => undefined },
        ...{ onDropped: () => undefined, onGone: () => undefined },
        onRequest: (incoming) => this.#onRequest(links, name, incoming),
        onMessage: (incoming) => this.#onRequest(links, name, incoming),
      },
      new Random(name),
    );
  }

  #onRequest(links: Links, name: string, incoming: Incoming): void {
    const { correlation } = incoming.message;
    const isOpening = incoming.message.name === "clientOpening";
    if (!isOpening) this.asked.push(name);
    if (this.silent.has(name)) return;
    if (this.isUnspecific && !isOpening) {
      const refused = refusalOf(0, NOT_UNDERSTOOD, NOT_UNDERSTOOD_HERE);
      links.answer(incoming.stream, refused, this.now);
      return;
    }
    const opened = {
      name: "opened",
      correlation,
      value: { manager: name, addresses: [] },
    } as const;
    const answer = {
      name: "clientAnswer",
      correlation,
      value: { kind: "nodes", nodes: [] },
    } as const;
    links.answer(incoming.stream, isOpening ? opened : answer, this.now);
  }
}

describe("a message that is not understood", () => {
  const UNREADABLE = { kind: "status", job: "" } as const;

  it("fails at once with that reason and affects no other message", () => {
    const world = new World("", { g1: "x" });
    world.silent.add("g1");
    world.ask();
    world.ask(UNREADABLE);
    expect(world.answers).toEqual([
      { id: 3, outcome: NOT_UNDERSTOOD_HERE, at: 0 },
      { id: 2, outcome: null, at: 0 },
    ]);
    world.silent.clear();
    world.run(TIMEOUT_MS);
    world.ask();
    expect(world.answers.at(-1)).toMatchObject({ id: 4, outcome: "clientAnswer" });
  });

  it("is identified without a correlation if it is the only open one", () => {
    const world = new World("", { g1: "x" });
    world.isUnspecific = true;
    world.ask();
    expect(world.answers).toEqual([{ id: 2, outcome: NOT_UNDERSTOOD_HERE, at: 0 }]);
  });
});

describe("a client", () => {
  it("asks a gate of its own region while three are available", () => {
    const gates = { a1: "far", n1: "near", a2: "far", n2: "near", n3: "near" };
    const world = new World("near", gates);
    expect(world.client.connected).toHaveLength(5);
    expect(world.client.pool).toMatchObject({ backups: [], candidates: 3 });
    expect(world.client.pool.primaries.toSorted()).toEqual(["n1:7700", "n2:7700", "n3:7700"]);
    const first = world.ask();
    expect([world.ask(), world.ask()]).toEqual([first, first]);
    expect(first).toMatch(/^n/);
    expect(new World("", gates).client.pool.candidates).toBe(5);
  });

  it("asks another gate when one does not answer, and returns when it does", () => {
    const world = new World("", { g1: "x", g2: "x", g3: "x" });
    const first = world.ask();
    world.silent.add(first);
    for (let i = 0; i < 4; i++) {
      world.push({ kind: "turn", to: address(`${first}:7700`) });
      world.ask();
      world.run(TIMEOUT_MS);
      world.push({ kind: "turn", to: null });
      expect(world.ask()).not.toBe(first);
    }
    expect(world.client.pool.evicted).toEqual([`${first}:7700`]);
    world.silent.clear();
    world.run(70_000);
    expect(world.client.pool.evicted).toEqual([]);
  });
});
