/** Options that may be given more than once: how commander puts their values together. */

/** Each value as it is; it may contain commas. */
export function repeated(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

/** Names that contain no comma: given again, or separated by commas. */
export function listed(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, ...value.split(",").filter((part) => part !== "")];
}
