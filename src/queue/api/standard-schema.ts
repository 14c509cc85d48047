/**
 * The part of Standard Schema (standardschema.dev) that is used here: zod, valibot, arktype and others implement it.
 */

export interface StandardSchema<Input = unknown, Output = unknown> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => Validation<Output> | Promise<Validation<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

type Validation<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly Issue[] };

interface Issue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

type Checked<Output> =
  | { readonly ok: true; readonly value: Output }
  | { readonly ok: false; readonly problem: string };

/** Issues reported for a rejected input. */
const ISSUES_MAX = 5;

/** Returns a value parsed by its schema, or what is wrong with it. */
export async function checkInput<Output>(
  schema: StandardSchema<unknown, Output>,
  value: unknown,
  what = "input",
): Promise<Checked<Output>> {
  const validation = await schema["~standard"].validate(value);
  if (validation.issues === undefined) return { ok: true, value: validation.value };
  const problems = validation.issues.slice(0, ISSUES_MAX).map((issue) => issueText(what, issue));
  return { ok: false, problem: problems.join("; ") };
}

function issueText(what: string, { path = [], message }: Issue): string {
  const keys = path.map((step) => String(typeof step === "object" ? step.key : step));
  return `${[what, ...keys].join(".")}: ${message}`;
}
