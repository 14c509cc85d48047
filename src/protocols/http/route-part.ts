/**
 * A path with values in it: route`/orders/${id}`. Values are escaped; the constant parts are known by
 * the identity of the template, so that they are looked at once and not in every call.
 */

export class RoutePart {
  /** With the values put in. */
  readonly path: string;
  /** "/orders/{}": what a step is called that was given no name. */
  readonly title: string;

  constructor(path: string, title: string) {
    this.path = path;
    this.title = title;
  }
}

/** By template: a place in the source has one for ever. */
const titles = new WeakMap<readonly string[], string>();

export function route(
  constants: TemplateStringsArray,
  ...values: readonly (string | number)[]
): RoutePart {
  let title = titles.get(constants);
  if (title === undefined) {
    const [first = ""] = constants;
    if (!first.startsWith("/")) throw new TypeError('route`…` begins with "/"');
    title = constants.join("{}");
    titles.set(constants, title);
  }
  let path = constants[0] as string;
  for (let at = 0; at < values.length; at++)
    path += encoded(values[at]) + (constants[at + 1] as string);
  return new RoutePart(path, title);
}

function encoded(value: string | number | undefined): string {
  if (typeof value === "number") return String(value);
  if (typeof value !== "string")
    throw new TypeError(
      `route: a value is ${value === null ? "null" : typeof value}, not text or a number`,
    );
  return /^[\w.~-]*$/.test(value) && value !== ".." && value !== "."
    ? value
    : encodeURIComponent(value).replaceAll(".", "%2E");
}
