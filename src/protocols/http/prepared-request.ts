/** A request that is composed once, and encoded once per settings, for every version of HTTP. */

import { clock } from "../call.ts";
import { type Origin, originOf } from "../net/origin.ts";
import {
  type BoundCall,
  type CallEnvironment,
  type CallRecord,
  type CallSettings,
  type CallSink,
  type CannedAnswer,
  type Session,
  workflowFolder,
} from "../protocol.ts";
import { IN_MEMORY_BYTES_MAX, isSource, readWhole } from "./body-source.ts";
import { DecodedBodies } from "./decoded-bodies.ts";
import { FilePart } from "./file-part.ts";
import { HttpMessage, type HttpVersion } from "./message.ts";
import { UrlPart } from "./parts.ts";
import {
  type ComposedRequest,
  compose,
  isSuccess,
  type Method,
  type RequestOptions,
} from "./request.ts";
import type { KeptAnswer } from "./response.ts";
import { type Template, unvaried, type Variation } from "./variation.ts";
import type { Target } from "./verbs.ts";

/** Parts of a response. */
interface AnsweredParts {
  readonly record: CallRecord;
  readonly error: string | null;
  readonly kept: KeptAnswer;
}

/** The request that another is a variation of, and how it differs. */
interface Likeness<Sent> {
  readonly template: PreparedRequest<Sent>;
  readonly variation: Variation;
  /** Default name of its step: "/orders/{}". */
  readonly title: string;
}

export class PreparedRequest<Sent> {
  readonly #version: HttpVersion<Sent>;
  readonly #method: Method;
  readonly #target: Target;
  readonly #options: RequestOptions;
  readonly #like: Likeness<Sent> | null;
  #template: Template | undefined;
  /** Created while the file was loaded. */
  readonly #atTheTop = workflowFolder() === null;
  /** Message of the last settings, which are nearly always the only ones. */
  #message: HttpMessage<Sent> | undefined;
  #settings: CallSettings | undefined;
  #others: WeakMap<CallSettings, HttpMessage<Sent>> | undefined;

  constructor(
    version: HttpVersion<Sent>,
    method: Method,
    target: Target,
    options: RequestOptions = NO_OPTIONS,
    like: Likeness<Sent> | null = null,
  ) {
    this.#version = version;
    this.#method = method;
    this.#target = target;
    this.#options = options;
    this.#like = like;
    if (like !== null) return;
    // Composed at once when no file must be read first, so that an error shows the user's own line.
    if (filesOf(options).length === 0) this.#composed();
  }

  async prepare(environment: CallEnvironment): Promise<void> {
    for (const file of filesOf(this.#options)) await file.prepare(environment);
    if (this.#like === null) {
      const { request, varying } = this.#composed();
      this.#template = { request: await inMemory(request), varying };
    }
    await this.message(environment.settings).origin.prepare();
  }

  /** Template of this request, or of the request that it is a variation of. */
  #composed(): Template {
    if (this.#like !== null) return this.#like.template.#composed();
    this.#template ??= { request: compose(this.#method, this.#target, this.#options), varying: [] };
    return this.#template;
  }

  /** Declares the names of headers whose values differ in requests like this one. */
  vary(names: readonly string[]): boolean {
    const { request } = this.#composed();
    const varying = names.map((name) => request.headers.findIndex(([given]) => given === name));
    const inOrder = varying.every((index, at) => index > (varying[at - 1] ?? -1));
    if (inOrder) this.#template = { request, varying };
    return inOrder;
  }

  /** Returns the same request with a variation; `title` is the default name of its step. */
  like(variation: Variation, title: string): PreparedRequest<Sent> {
    const like = { template: this, variation, title };
    return new PreparedRequest(this.#version, this.#method, this.#target, this.#options, like);
  }

  bind(session: Session, keep: boolean, sink: CallSink): BoundCall {
    return this.#version.exchange(this.message(session.settings), session, keep, sink);
  }

  /** See `PreparedCall.rebind`; used by flows. */
  rebind(session: Session, spent: BoundCall | null, sink: CallSink): BoundCall {
    const message = this.message(session.settings);
    const exchange = this.#version.exchangeOf(spent);
    if (exchange === null) return this.#version.exchange(message, session, true, sink);
    exchange.aim(message);
    return exchange;
  }

  /** Builds the response for a canned answer. */
  answered(answer: CannedAnswer): AnsweredParts {
    const { body, headers = {}, json, status = 200 } = answer;
    const failed = !isSuccess(this.#composed().request, status);
    const now = clock();
    const record = {
      errorKind: failed ? ("status" as const) : null,
      status,
      startedAt: now,
      firstByteAt: now,
      endedAt: now,
      connectMs: -1,
      tlsMs: -1,
      bytesIn: 0,
      bytesOut: 0,
    };
    const kept: KeptAnswer = {
      readHeaders: () => Object.entries(headers),
      body: Buffer.from(body ?? (json === undefined ? "" : JSON.stringify(json))),
      tooLong: false,
      bodyBytesMax: Number.POSITIVE_INFINITY,
      owner: { decoded: new DecodedBodies() },
    };
    const error = failed ? `the server answered with status ${status}` : null;
    return { record, error, kept };
  }

  /** Describes the work done in advance. */
  get prepared(): string {
    if (this.#atTheTop) return "prepared before the run";
    if (this.#like === null) return "composed for each call";
    const { headerValues, json } = this.#like.variation;
    const more = [
      ...(headerValues.length > 0 ? ["headers"] : []),
      ...(json === null ? [] : ["content"]),
    ];
    return `prepared but for its ${["path", ...more].join(" and ")}`;
  }

  /** "GET /items", without the parts that vary. */
  get title(): string {
    if (this.#like !== null) return `${this.#method} ${this.#like.title}`;
    const { method, path } = this.#composed().request;
    const query = path.indexOf("?");
    return `${method} ${query < 0 ? path : path.slice(0, query)}`;
  }

  /** Destination; known before the files of its body are read. */
  get origin(): Origin {
    const url = typeof this.#target === "string" ? new UrlPart(this.#target) : this.#target;
    return originOf(url, url.route);
  }

  message(settings: CallSettings): HttpMessage<Sent> {
    if (this.#message !== undefined && this.#settings === settings) return this.#message;
    const message = this.#others?.get(settings) ?? this.#newMessage(settings);
    if (this.#message !== undefined && this.#settings !== undefined) {
      this.#others ??= new WeakMap();
      this.#others.set(this.#settings, this.#message);
    }
    this.#message = message;
    this.#settings = settings;
    return message;
  }

  #newMessage(settings: CallSettings): HttpMessage<Sent> {
    const template = this.#composed();
    if (this.#like === null)
      return new HttpMessage(this.#version, template, unvaried(template), settings);
    const like = this.#like.template.message(settings);
    return new HttpMessage(this.#version, template, this.#like.variation, like);
  }
}

const NO_OPTIONS: RequestOptions = {};

/** Files that must be read before the request can be composed. */
function filesOf({ body, form }: RequestOptions): readonly FilePart[] {
  if (form === undefined) return body instanceof FilePart ? [body] : NO_FILES;
  return [body, ...Object.values(form).flat()].filter((value) => value instanceof FilePart);
}

const NO_FILES: readonly FilePart[] = [];

/** Short replayable bodies are read once; the loop then writes bytes. */
async function inMemory(request: ComposedRequest): Promise<ComposedRequest> {
  const { body } = request;
  if (!isSource(body) || !body.replayable) return request;
  if (body.length === null || body.length > IN_MEMORY_BYTES_MAX) return request;
  return { ...request, body: await readWhole(body) };
}
