/** Definitions of executors as known to clients: names, inputs and results. */

import type { GraphSubmit } from "./graph-request.ts";
import type { StandardSchema } from "./standard-schema.ts";
import type { SubmitRequest } from "./submit-request.ts";
import type { Task } from "./types.ts";

/** An executor as seen by clients. One without types accepts and returns anything. */
export interface Definition<Input = unknown, Result = unknown> {
  /** Schema of its input. */
  readonly input?: StandardSchema;
  /** Only for the compiler: absent at run time. */
  readonly types?: { readonly input: Input; readonly result: Result };
}

/** By their names: definitions, or plain functions. */
export type Definitions = Readonly<Record<string, object>>;

type TypesOf<Kind> =
  Kind extends Definition<infer Input, infer Result>
    ? { readonly input: Input; readonly result: Result }
    : { readonly input: unknown; readonly result: unknown };

/** A submit whose executor is one of those defined, with a valid input for it. */
export type TypedSubmit<Known extends Definitions> = {
  [Name in keyof Known & string]: Omit<SubmitRequest, "executor" | "input"> & {
    readonly executor: Name;
  } & InputField<TypesOf<Known[Name]>["input"]>;
}[keyof Known & string];

/** The same as a task of a graph with these names. */
export type TypedGraphSubmit<Known extends Definitions, Names extends string> = {
  [Name in keyof Known & string]: Omit<GraphSubmit<Names>, "executor" | "input"> & {
    readonly executor: Name;
  } & InputField<TypesOf<Known[Name]>["input"]>;
}[keyof Known & string];

declare const resultOf: unique symbol;

/** A submitted task, by its id; its result has the type of its executor. */
export interface TaskReference<Result = unknown> {
  readonly id: string;
  /** Only for the compiler: absent at run time. */
  readonly [resultOf]: Result;
}

export interface TypedGraph<Known extends Definitions, Tasks> {
  readonly tasks: {
    readonly [Name in keyof Tasks]: Tasks[Name] extends { readonly executor: infer Executor }
      ? TaskReference<TypedTask<Known, Executor>["result"]>
      : never;
  };
  /** False when its key belongs to this earlier graph. */
  readonly created: boolean;
}

/** An input of any type may be omitted. */
type InputField<Input> = unknown extends Input
  ? { readonly input?: Input }
  : { readonly input: Input };

/** A task of one of the executors; its result is null until it has succeeded. */
export type TypedTask<Known extends Definitions, Name> = Omit<Task, "result"> & {
  readonly result: Name extends keyof Known ? TypesOf<Known[Name]>["result"] | null : unknown;
};
