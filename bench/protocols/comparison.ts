/** Parts of a comparison: a server, our side, and the peers that make the same calls. */

import { clock } from "../../src/protocols/net/clock.ts";
import type {
  BoundCall,
  CallRecord,
  CallSink,
  PreparedCall,
} from "../../src/protocols/protocol.ts";
import { TestSession } from "../../src/protocols/testing/session.ts";

export interface Side {
  run(operations: number): Promise<void>;
  /** For a peer that is a process of its own: CPU time of its last run. */
  cpuMicros?(): number;
}

interface PeerAim {
  readonly name: string;
  /** Limit of our cost relative to this peer's. */
  readonly must: number;
  /** Why it cannot be measured here; null where it can. */
  readonly absent: string | null;
}

interface Peer<Server> extends PeerAim {
  open(server: Server): Side | Promise<Side>;
}

interface Sides {
  readonly ours: Side;
  /** In the order of the peers, without missing ones. */
  readonly peers: readonly Side[];
  stop(): Promise<void>;
}

export interface Comparison {
  readonly name: string;
  readonly operations: number;
  /** Why there is no server; null where there is. */
  readonly absent: string | null;
  readonly peers: readonly PeerAim[];
  start(): Promise<Sides>;
}

interface ComparisonOf<Server> extends Omit<Comparison, "start"> {
  readonly peers: readonly Peer<Server>[];
  server(): Promise<Server>;
  ours(server: Server): Promise<Side>;
}

export function comparison<Server extends { stop(): Promise<void> }>({
  ours,
  server: startServer,
  ...described
}: ComparisonOf<Server>): Comparison {
  return {
    ...described,
    start: async () => {
      const server = await startServer();
      const present = described.peers.filter(({ absent }) => absent === null);
      const peers = await Promise.all(present.map((peer) => peer.open(server)));
      return { ours: await ours(server), peers, stop: () => server.stop() };
    },
  };
}

export type Operation = () => Promise<unknown>;

export const CONNECTIONS = 8;

/** Runs loops side by side, each with a connection of its own unless they share. */
export async function lanes(open: () => Promise<Operation>, count = CONNECTIONS): Promise<Side> {
  const operations = await Promise.all(Array.from({ length: count }, open));
  return {
    run: async (total) => {
      const each = Math.ceil(total / count);
      await Promise.all(
        operations.map(async (operation) => {
          for (let i = 0; i < each; i++) await operation();
        }),
      );
    },
  };
}

interface OurOptions {
  readonly connections?: number;
  /** Concurrent calls on each connection. */
  readonly calls?: number;
}

/** Our side: one virtual user for each connection. */
export async function ours(
  call: PreparedCall,
  { calls = 1, connections = CONNECTIONS }: OurOptions = {},
): Promise<Side> {
  const users = Array.from({ length: connections }, (_, user) => new TestSession({}, user));
  const [first] = users;
  if (first !== undefined) await call.prepare({ settings: first.settings, folder: "." });
  const loops = users.flatMap((user) =>
    Array.from({ length: calls }, () => new CallLoop(call, user)),
  );
  return {
    run: async (total) => {
      const each = Math.ceil(total / loops.length);
      await Promise.all(loops.map((loop) => loop.run(each)));
    },
  };
}

/** As in the engine, the end of a call starts the next one; each call returns its result. */
class CallLoop implements CallSink {
  readonly #bound: BoundCall;
  #left = 0;
  #ended: (error?: Error) => void = () => undefined;

  constructor(call: PreparedCall, user: TestSession) {
    this.#bound = call.bind(user, true, this);
  }

  run(calls: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#left = calls;
      this.#ended = (error) => (error === undefined ? resolve() : reject(error));
      this.#bound.start(clock());
    });
  }

  callFinished({ error, errorKind }: CallRecord): void {
    if (errorKind !== null) this.#ended(new Error(`${errorKind}: ${error}`));
    else if (--this.#left > 0) this.#bound.start(clock());
    else this.#ended();
  }
}

/** For errors of bare clients, when their server is stopped at the end. */
export const ignored = (): void => undefined;

export const unless = (present: boolean, reason: string): string | null =>
  present ? null : reason;
