/**
 * A path with values in it: route`/orders/${id}`. Values are escaped; the constant parts are known by
 * the identity of the template, so that they are looked at once and not in every call.
 */

export class RoutePart {
  /** With the values put in. */
  readonly path: string;
  readonly template: RouteTemplate;

  constructor(path: string, template: RouteTemplate) {
    this.path = path;
    this.template = template;
  }
}

interface RouteTemplate {
  /** "/orders/{}": what a step is called that was given no name. */
  readonly title: string;
  /** Whatever its values, the path needs no parsing: nothing to escape, and no dots that would go up. */
  readonly plain: boolean;
}

/** Dots of the constants could make up ".." together with those of a value. */
const PLAIN_CONSTANT = /^[\w\-~!$&()*+,;=:@/?%]*$/;

/** By template: a place in the source has one for ever. */
const templates = new WeakMap<readonly string[], RouteTemplate>();

export function route(
  constants: TemplateStringsArray,
  ...values: readonly (string | number)[]
): RoutePart {
  let template = templates.get(constants);
  if (template === undefined) {
    const [first = ""] = constants;
    if (!first.startsWith("/")) throw new TypeError('route`…` begins with "/"');
    const plain = constants.every((constant) => PLAIN_CONSTANT.test(constant));
    template = { title: constants.join("{}"), plain };
    templates.set(constants, template);
  }
  let path = constants[0] as string;
  for (let at = 0; at < values.length; at++)
    path += encoded(values[at]) + (constants[at + 1] as string);
  return new RoutePart(path, template);
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
