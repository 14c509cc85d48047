/**
 * A path with values: route`/orders/${id}`, or route("/orders/{id}", { id }) where the path has a type. Values are
 * escaped. The constant parts are parsed once rather than in every call: they are cached by the identity of the
 * template, or by its text.
 */

export class RoutePart<Template extends string = string, Values = unknown> {
  /** Exists only for the compiler; `TypedHttpTarget` checks it. */
  declare readonly filled?: readonly [Template, Values];
  /** Path with the values inserted. */
  readonly path: string;
  readonly template: RouteTemplate;

  constructor(path: string, template: RouteTemplate) {
    this.path = path;
    this.template = template;
  }
}

interface RouteTemplate {
  /** Default name of a step: "/orders/{}". */
  readonly title: string;
  /** The path needs no parsing whatever its values: nothing to escape, and no dot segments. */
  readonly plain: boolean;
}

/** Without dots, which could form ".." together with those of a value. */
const PLAIN_CONSTANT = /^[\w\-~!$&()*+,;=:@/?%]*$/;

/** By template; each occurrence in the source has one permanent identity. */
const templates = new WeakMap<readonly string[], RouteTemplate>();

type RouteValue = string | number;

/** "id" of "/orders/{id}". */
type RouteNames<Template extends string> = Template extends `${string}{${infer Name}}${infer Rest}`
  ? Name | RouteNames<Rest>
  : never;

export function route<
  const Template extends string,
  const Values extends Readonly<Record<RouteNames<Template>, RouteValue>>,
>(template: Template, values: Values): RoutePart<Template, Values>;
export function route(constants: TemplateStringsArray, ...values: readonly RouteValue[]): RoutePart;
export function route(
  template: string | TemplateStringsArray,
  ...values: readonly (RouteValue | Readonly<Record<string, RouteValue>>)[]
): RoutePart {
  if (typeof template !== "string") return filled(template, values as readonly RouteValue[]);
  const { constants, names } = split(template);
  const [given = {}] = values as readonly Readonly<Record<string, RouteValue>>[];
  return filled(
    constants,
    names.map((name) => {
      if (Object.hasOwn(given, name)) return given[name];
      throw new TypeError(`route: "${template}" needs a value for {${name}}`);
    }),
  );
}

interface NamedTemplate {
  readonly constants: readonly string[];
  readonly names: readonly string[];
}

/** By text. A program has few; the size is bounded for programs that generate them in a loop. */
const named = new Map<string, NamedTemplate>();
const NAMED_MAX = 1_024;

function split(template: string): NamedTemplate {
  const known = named.get(template);
  if (known !== undefined) return known;
  const parts = template.split(/\{([^{}]*)\}/);
  const made = {
    constants: parts.filter((_, at) => at % 2 === 0),
    names: parts.filter((_, at) => at % 2 === 1),
  };
  if (named.size >= NAMED_MAX) named.clear();
  named.set(template, made);
  return made;
}

function filled(
  constants: readonly string[],
  values: readonly (RouteValue | undefined)[],
): RoutePart {
  let template = templates.get(constants);
  if (template === undefined) {
    const [first = ""] = constants;
    if (!first.startsWith("/")) throw new TypeError('a route begins with "/"');
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
