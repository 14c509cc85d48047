/** A call to a target that a step performs: a plain value, encoded once, for any user. */

import type { Duration } from "../../core/base/duration.ts";
import type { CallTimeouts } from "../call.ts";
import { DescriptionAwaited, type NotAwaitable } from "../description.ts";
import type { Origin } from "../net/origin.ts";
import type {
  BoundCall,
  CallRecord,
  CallSettings,
  CallSink,
  CannedAnswer,
  PreparedCall,
  Session,
} from "../protocol.ts";
import { type Answer, type Described, Exchange } from "./exchange.ts";
import { TargetResult } from "./result.ts";
import { millisecondsOf, type Target } from "./target.ts";

interface Description<Command, Value> {
  readonly command: Command;
  /** Default name of its step, without the parts that vary. */
  readonly title: string;
  /** The command as people would write it; the title by default. */
  readonly shown?: string;
  /** Timeout of this call; the target's by default. */
  readonly timeout?: Duration | undefined;
  /** Converts the value returned by the connection into that of the result. */
  decode(answer: unknown): Value;
}

export class DescribedCall<Command, Value>
  implements PreparedCall<TargetResult<Value>>, Described<Command>
{
  declare readonly resultType?: TargetResult<Value>;
  readonly protocol: string;
  readonly target: Target<Command>;
  readonly command: Command;
  readonly title: string;
  /** Absent where nothing can be checked before the run, such as datagrams. */
  readonly origin?: () => Origin;
  readonly #shown: string;
  readonly #timeoutMs: number | null;
  readonly #decode: (answer: unknown) => Value;

  constructor(target: Target<Command>, description: Description<Command, Value>) {
    const { command, shown, timeout, title } = description;
    this.protocol = target.protocol.name;
    this.target = target;
    this.command = command;
    this.title = title;
    if (target.protocol.listens !== false) this.origin = () => target.origin;
    this.#shown = shown ?? title;
    this.#timeoutMs = timeout === undefined ? null : millisecondsOf(timeout, "timeout");
    this.#decode = description.decode;
  }

  prepare(): Promise<void> {
    return this.target.prepare();
  }

  bind(session: Session, keep: boolean, sink: CallSink): BoundCall {
    return new Exchange(this, this.target.user(session), keep, sink);
  }

  rebind(session: Session, spent: BoundCall | null, sink: CallSink): BoundCall {
    const user = this.target.user(session);
    if (spent instanceof Exchange && spent.user === user) {
      spent.aim(this);
      return spent;
    }
    return new Exchange(this, user, true, sink);
  }

  timeouts(settings: CallSettings): CallTimeouts {
    return this.target.timeouts(this.#timeoutMs, settings);
  }

  result(record: CallRecord, answer: Answer): TargetResult<Value> {
    return new TargetResult(this.protocol, record, answer, this.#decode);
  }

  answered({ body, json, status = 0 }: CannedAnswer): TargetResult<Value> {
    const value = json ?? body ?? null;
    const answer = { error: null, errorCode: "", value, loginMs: -1 };
    return this.result({ ...CANNED_RECORD, status }, answer);
  }

  shown(): { readonly request: string; readonly prepared: string } {
    return { request: this.#shown, prepared: "encoded when it was described" };
  }

  // biome-ignore lint/suspicious/noThenProperty: it throws the line to write instead.
  get then(): NotAwaitable {
    const { name } = this.target.protocol;
    throw new DescriptionAwaited(`${name} ${this.title}`, `return ${name}.send(…) in a step`);
  }
}

const CANNED_RECORD: CallRecord = {
  errorKind: null,
  status: 0,
  startedAt: 0,
  firstByteAt: 0,
  endedAt: 0,
  connectMs: -1,
  tlsMs: -1,
  bytesIn: 0,
  bytesOut: 0,
};
