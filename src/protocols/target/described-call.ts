/** A call to a target that a step performs: a plain value, encoded once, for any user. */

import type { CallTimeouts } from "../call.ts";
import { DescriptionAwaited, type NotAwaitable } from "../description.ts";
import type { Origin } from "../net/origin.ts";
import type {
  BoundCall,
  CallRecord,
  CallResult,
  CallSettings,
  CallSink,
  CannedAnswer,
  PreparedCall,
  Session,
} from "../protocol.ts";
import { type Answer, type Described, Exchange } from "./exchange.ts";
import type { Target } from "./target.ts";

interface Description<Command, Result> {
  readonly command: Command;
  /** What a step is called that was given no name; without what differs from call to call. */
  readonly title: string;
  /** The command as people would write it. */
  readonly shown: string;
  /** Of this call; null leaves it to the target. */
  readonly timeoutMs?: number | null;
  result(record: CallRecord, answer: Answer): Result;
}

export class DescribedCall<Command, Result extends CallResult>
  implements PreparedCall<Result>, Described<Command>
{
  declare readonly resultType?: Result;
  readonly protocol: string;
  readonly target: Target<Command>;
  readonly command: Command;
  readonly title: string;
  /** Absent where nobody could be asked whether they listen: for datagrams, say. */
  readonly origin?: () => Origin;
  readonly #description: Description<Command, Result>;

  constructor(target: Target<Command>, description: Description<Command, Result>) {
    this.protocol = target.protocol.name;
    this.target = target;
    this.command = description.command;
    this.title = description.title;
    if (target.protocol.listens !== false) this.origin = () => target.origin;
    this.#description = description;
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
    return this.target.timeouts(this.#description.timeoutMs ?? null, settings);
  }

  result(record: CallRecord, answer: Answer): Result {
    return this.#description.result(record, answer);
  }

  answered({ body, json, status = 0 }: CannedAnswer): Result {
    const value = json ?? body ?? null;
    const answer = { error: null, errorCode: "", value, loginMs: -1 };
    return this.result({ ...CANNED_RECORD, status }, answer);
  }

  shown(): { readonly request: string; readonly prepared: string } {
    return { request: this.#description.shown, prepared: "encoded when it was described" };
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
