/**
 * Connections to one target: of one virtual user, or shared by all users of a core, kept from iteration
 * to iteration. (PROTO-2) A call takes one
 * that has room, opens another while it may, and else waits; how long it waited is part of its
 * `connectMs`, so that nobody takes it for the server's time.
 */

import { clock, type MeasuredCall } from "../call.ts";
import type { Origin } from "../net/origin.ts";
import { setImmediate } from "../net/timers.ts";
import type { CallSettings } from "../protocol.ts";
import type {
  CarriedCall,
  Connection,
  ConnectionFailure,
  ConnectionHost,
  OpenTimes,
} from "./connection.ts";

/** Calls that wait for a connection of one pool; more fail for want of resources. */
const WAITING_CALLS_MAX = 65_536;

export interface PoolTarget<Command> {
  readonly origin: Origin;
  /** Calls that one connection carries at once. */
  readonly callsPerConnectionMax: number;
  connect(host: ConnectionHost, now: number): Connection<Command>;
}

/** A call as its pool sees it. */
export interface PooledCall<Command> extends CarriedCall<Command> {
  readonly measure: MeasuredCall;
  /** Whose call it is. */
  readonly user: object;
  /** Where it is carried; null while it waits, and when it has ended. */
  held: HeldConnection<Command> | null;
  /** Negative when an open connection was used. */
  loginMs: number;
}

interface PoolOptions {
  readonly settings: CallSettings;
  readonly user: number;
  readonly connectionsMax: number;
}

export class ConnectionPool<Command> {
  readonly target: PoolTarget<Command>;
  readonly settings: CallSettings;
  readonly user: number;
  readonly #connectionsMax: number;
  readonly #held = new Set<HeldConnection<Command>>();
  /** Those with room for another call. */
  readonly #ready: HeldConnection<Command>[] = [];
  readonly #waiting: PooledCall<Command>[] = [];

  constructor(target: PoolTarget<Command>, { connectionsMax, settings, user }: PoolOptions) {
    this.target = target;
    this.settings = settings;
    this.user = user;
    this.#connectionsMax = connectionsMax;
  }

  acquire(call: PooledCall<Command>, now: number): void {
    const ready = this.#ready.at(-1);
    if (ready !== undefined) {
      ready.carry(call, now);
      if (ready.full) this.#ready.pop();
      return;
    }
    if (this.#held.size < this.#connectionsMax) {
      const held = new HeldConnection(this);
      this.#held.add(held);
      held.carry(call, now);
      if (!held.full && !held.closed) this.#ready.push(held);
      return;
    }
    if (this.#waiting.length >= WAITING_CALLS_MAX) {
      const text = `${WAITING_CALLS_MAX} calls wait for a connection`;
      // In a turn of its own: a loop of calls that fail at once must not hold up everything else.
      setImmediate(() => call.failed({ kind: "resources", text }, clock()));
      return;
    }
    this.#waiting.push(call);
  }

  /** A call that waits for a connection has given up. */
  withdraw(call: PooledCall<Command>): void {
    const at = this.#waiting.indexOf(call);
    if (at >= 0) this.#waiting.splice(at, 1);
  }

  /** A connection that was full has room again. */
  hasRoom(held: HeldConnection<Command>): void {
    this.#ready.push(held);
    this.#serveWaiting();
  }

  gone(held: HeldConnection<Command>): void {
    this.#held.delete(held);
    const at = this.#ready.indexOf(held);
    if (at >= 0) this.#ready.splice(at, 1);
    this.#serveWaiting();
  }

  #serveWaiting(): void {
    const next = this.#waiting.shift();
    if (next !== undefined) this.acquire(next, clock());
  }

  reset(): void {
    for (const held of this.#held) held.reset();
  }

  /** Cuts off, untold, what is under way for whom `leaves` names. */
  cut(leaves: (call: PooledCall<Command>) => boolean): void {
    for (const call of this.#waiting.filter(leaves)) {
      this.withdraw(call);
      call.measure.cancel();
    }
    for (const held of [...this.#held]) {
      for (const call of held.carried.filter(leaves)) {
        call.measure.cancel();
        held.abandon(call);
      }
    }
  }

  close(): void {
    this.cut(() => true);
    for (const held of [...this.#held]) held.drop();
  }
}

/** One connection and the calls on it. */
export class HeldConnection<Command> implements ConnectionHost {
  readonly carried: PooledCall<Command>[] = [];
  open = false;
  closed = false;
  readonly #pool: ConnectionPool<Command>;
  #connection: Connection<Command> | null = null;

  constructor(pool: ConnectionPool<Command>) {
    this.#pool = pool;
  }

  get origin(): Origin {
    return this.#pool.target.origin;
  }

  get settings(): CallSettings {
    return this.#pool.settings;
  }

  get user(): number {
    return this.#pool.user;
  }

  get full(): boolean {
    return this.carried.length >= this.#pool.target.callsPerConnectionMax;
  }

  carry(call: PooledCall<Command>, now: number): void {
    call.held = this;
    this.carried.push(call);
    if (this.open) {
      const { measure } = call;
      // It waited for this connection, which another call had.
      if (now > measure.startedAt) measure.opened(now - measure.startedAt, -1);
      this.#connection?.send(call, now);
      return;
    }
    call.measure.connecting(now);
    if (this.carried.length > 1) return;
    const { origin } = this;
    if (origin.address !== undefined && !origin.stale) this.#connect(now);
    else call.measure.lookUp(origin, now, (later) => this.#connect(later));
  }

  #connect(now: number): void {
    if (!this.closed) this.#connection = this.#pool.target.connect(this, now);
  }

  opened(times: OpenTimes, now: number): void {
    if (this.closed) return;
    this.open = true;
    this.#measureOpening(times, now);
    for (const call of [...this.carried]) this.#connection?.send(call, now);
  }

  /** The first call had it opened, the others waited for that. */
  #measureOpening({ connectMs, loginMs, tlsMs }: OpenTimes, now: number): void {
    this.carried.forEach((call, at) => {
      const { measure } = call;
      if (at > 0) measure.opened(now - measure.startedAt, -1);
      else {
        call.loginMs = loginMs;
        measure.opened(connectMs + Math.max(0, loginMs), tlsMs);
      }
    });
  }

  lost(failure: ConnectionFailure, now: number): void {
    if (this.closed) return;
    if (!this.open && failure.opening !== undefined) this.#measureOpening(failure.opening, now);
    const carried = this.#end();
    for (const call of carried) call.failed(failure, now);
  }

  /** A call has ended, told by itself; the connection is there for the next one. */
  left(call: PooledCall<Command>): void {
    const wasFull = this.full;
    this.#remove(call);
    const spent = this.#connection?.spent === true || !this.settings.keepAlive;
    if (!this.open || (spent && this.carried.length === 0)) this.drop();
    else if (wasFull && !this.closed) this.#pool.hasRoom(this);
  }

  /** A call gives up before its end. */
  abandon(call: PooledCall<Command>): void {
    if (this.open && this.#connection?.forget?.(call) === true) {
      call.held = null;
      this.left(call);
      return;
    }
    this.#remove(call);
    call.held = null;
    this.lost({ kind: "reset", text: "another call on the connection was given up" }, clock());
  }

  #remove(call: PooledCall<Command>): void {
    const { carried } = this;
    const at = carried.lastIndexOf(call);
    // Nearly always the only one, which costs no list of what was taken out.
    if (at === carried.length - 1) carried.pop();
    else if (at >= 0) carried.splice(at, 1);
  }

  reset(): void {
    this.#connection?.reset?.();
  }

  drop(): void {
    if (!this.closed) this.#end();
  }

  #end(): readonly PooledCall<Command>[] {
    this.closed = true;
    this.open = false;
    const carried = this.carried.splice(0);
    for (const call of carried) call.held = null;
    this.#connection?.destroy();
    this.#pool.gone(this);
    return carried;
  }
}
