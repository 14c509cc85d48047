/** What clients know of executors by their definitions: names, inputs and results. */

import type { StandardSchema } from "./standard-schema.ts";
import type { SubmitRequest } from "./submit-request.ts";
import type { Task } from "./types.ts";

/** An executor as far as clients go. One without types takes and gives anything. */
export interface Definition<Input = unknown, Result = unknown> {
  /** What checks its input. */
  readonly input?: StandardSchema;
  /** Only for the compiler: nothing is there when programs run. */
  readonly types?: { readonly input: Input; readonly result: Result };
}

/** By their names: definitions, or plain functions. */
export type Definitions = Readonly<Record<string, object>>;

type TypesOf<Kind> =
  Kind extends Definition<infer Input, infer Result>
    ? { readonly input: Input; readonly result: Result }
    : { readonly input: unknown; readonly result: unknown };

/** A submit whose executor is one of those defined, with an input that it takes. */
export type TypedSubmit<Known extends Definitions> = {
  [Name in keyof Known & string]: Omit<SubmitRequest, "executor" | "input"> & {
    readonly executor: Name;
  } & InputField<TypesOf<Known[Name]>["input"]>;
}[keyof Known & string];

/** An input that may be anything may be missing. */
type InputField<Input> = unknown extends Input
  ? { readonly input?: Input }
  : { readonly input: Input };

/** A task of one of the executors; its result is null until it has succeeded. */
export type TypedTask<Known extends Definitions, Name> = Omit<Task, "result"> & {
  readonly result: Name extends keyof Known ? TypesOf<Known[Name]>["result"] | null : unknown;
};
