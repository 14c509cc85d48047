/** An active subscription and the messages that it delivers. */

import type { Duration } from "../../../core/base/duration.ts";
import type { Failure } from "../../errors.ts";
import { contentAsked } from "../../failed-content.ts";
import { type CallRecord, CallResult, type CannedAnswer } from "../../protocol.ts";
import type { WebsocketMessage } from "../../websocket/message.ts";
import type { WebsocketResponse } from "../../websocket/response.ts";
import {
  answeredRecord,
  checkListenName,
  MeasuredMessages,
  SocketCall,
  type Speaking,
  type TimestampOf,
} from "../../websocket/socket-call.ts";
import { errorsText, type GraphqlError } from "../response.ts";
import { completeMessage, readMessage } from "./messages.ts";
import { type LiveSubscription, Subscriptions } from "./subscriptions.ts";

export interface NextOptions {
  /** Timeout of the wait. */
  readonly within?: Duration;
}

export class Subscription<Data> extends CallResult {
  override readonly protocol: string = "graphql";
  readonly #speaking: Speaking | null;
  /** Null when subscribing failed, or when its response was canned. */
  readonly #live: LiveSubscription | null;

  constructor(
    record: CallRecord,
    error: string | null,
    speaking: Speaking | null,
    live: LiveSubscription | null,
  ) {
    super(record, error);
    this.#speaking = speaking;
    this.#live = live;
  }

  /** True while more messages may arrive. */
  get active(): boolean {
    return this.#live?.done === false && this.#speaking?.[1].open === true;
  }

  /** Describes the wait for a message: the first unread one, or the next to arrive. */
  next({ within }: NextOptions = {}): SocketCall<SubscriptionMessage<Data>> {
    return this.#call("next", within);
  }

  /** Describes the end of the subscription; the call finishes when the request was written to the network. */
  unsubscribe(): SocketCall<SubscriptionMessage<Data>> {
    return this.#call("unsubscribe", undefined);
  }

  #call(
    verb: "next" | "unsubscribe",
    within: Duration | undefined,
  ): SocketCall<SubscriptionMessage<Data>> {
    contentAsked(this);
    const live = this.#live;
    return new SocketCall<SubscriptionMessage<Data>>(
      {
        protocol: "graphql",
        title: `subscription ${verb}`,
        within,
        payload: verb === "next" || live === null ? "" : completeMessage(live.id),
        act: (socket, call, now) => {
          if (live !== null) Subscriptions.of(socket)[verb](call, live, now);
        },
        result: SubscriptionMessage.of<Data>,
        answered: SubscriptionMessage.answered<Data>,
      },
      live === null ? null : this.#speaking,
    );
  }

  /**
   * Counts messages that no call waits for under this name. Their latency counts from the time that `at` returns;
   * without `at` they have none. Errors and a lost connection count as failures.
   */
  listen(name: string, at?: TimestampOf<Data>): void {
    contentAsked(this);
    checkListenName(name);
    if (this.#speaking === null || this.#live === null) return;
    const timestamp = at && ((message: WebsocketMessage) => at(contentOf(message).data as Data));
    this.#live.channel.listen(
      new MeasuredMessages(this.#speaking, { name, at: timestamp, refusal: refusalOf }),
    );
  }
}

interface Content {
  readonly data: unknown;
  readonly errors: readonly GraphqlError[];
  /** No more messages will arrive. */
  readonly done: boolean;
}

/** Content of a message that the dispatcher has parsed; empty when the subscription had ended. */
function contentOf(message: WebsocketMessage | null): Content {
  if (message === null) return { data: null, errors: [], done: true };
  const read = readMessage(message.json());
  if (read.type === "next") return { ...read.answer, done: false };
  return { data: null, errors: read.type === "error" ? read.errors : [], done: true };
}

function refusalOf(message: WebsocketMessage): Failure | null {
  const { errors } = contentOf(message);
  return errors.length === 0 ? null : { kind: "application", text: errorsText(errors) };
}

/** Outcome of a wait for a message: data, errors, or the end of the subscription. */
export class SubscriptionMessage<Data> extends CallResult {
  override readonly protocol: string = "graphql";
  readonly errors: readonly GraphqlError[];
  /** The subscription has ended, and this is not a message. */
  readonly done: boolean;
  readonly #data: unknown;

  private constructor(record: CallRecord, error: string | null, content: Content) {
    super(record, error);
    this.errors = content.errors;
    this.done = content.done;
    this.#data = content.data;
  }

  static of<Data>(response: WebsocketResponse): SubscriptionMessage<Data> {
    const failed = response.errorKind !== null;
    const content = failed ? NOTHING : contentOf(response.message);
    if (failed || content.errors.length === 0)
      return new SubscriptionMessage<Data>(response, response.error, content);
    const error = errorsText(content.errors);
    return new SubscriptionMessage<Data>(refused(response), error, content);
  }

  static answered<Data>({ json = null, status = 0 }: CannedAnswer): SubscriptionMessage<Data> {
    const content = { data: json, errors: [], done: false };
    return new SubscriptionMessage<Data>(answeredRecord(status), null, content);
  }

  /** In a flow, accessing it on a failed call ends the iteration because of that call. */
  get data(): Data {
    contentAsked(this);
    if (this.done) throw new Error("the subscription has ended: look at done first");
    return this.#data as Data;
  }
}

const NOTHING: Content = { data: null, errors: [], done: false };

/** A complete message that reports errors. */
function refused(response: WebsocketResponse): CallRecord {
  const { bytesIn, bytesOut, connectMs, endedAt, firstByteAt, sent, startedAt } = response;
  const times = { startedAt, firstByteAt, endedAt, connectMs, tlsMs: response.tlsMs };
  return { ...times, bytesIn, bytesOut, sent, status: 0, errorKind: "application" };
}
