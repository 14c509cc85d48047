/**
 * Finds one element in HTML, for the hidden fields and links that a journey needs: a scanner of start tags, not a
 * document parser. It reads the text once, from left to right, and handles comments, scripts, styles, quotes and
 * character references; it builds no tree. A selector therefore matches one element by its own tag
 * (`input[name=csrf].big`), never by its position.
 */

/** No hand-written tag has more attributes. */
const ATTRIBUTES_MAX = 256;
/** Elements whose content has no tags (HTML §13.2.5); a script may contain text that looks like one. */
const RAW_CONTENT = new Set(["script", "style", "textarea", "title", "xmp", "iframe", "noembed"]);

export interface HtmlElement {
  /** In lower case: "input". */
  readonly tag: string;
  /** Names in lower case, values with character references replaced; "" where none was written. */
  readonly attributes: ReadonlyMap<string, string>;
  /** Returns the attribute of that name. */
  attribute(name: string): string | undefined;
  /** Attribute `value`, `content` or `href`, in this order: the one that forms and links need. */
  readonly value: string | undefined;
  /** Trimmed text from the tag to the next one: "Log in" of a button. */
  readonly text: string;
}

type Test = (tag: string, attributes: ReadonlyMap<string, string>) => boolean;

/** Returns the first matching element, or undefined. Throws for a selector that this scanner does not support. */
export function findElement(html: string, selector: string): HtmlElement | undefined {
  const fits = selectorOf(selector);
  for (const { attributes, end, tag } of startTags(html)) {
    if (fits(tag, attributes)) return elementOf(html, tag, attributes, end);
  }
  return undefined;
}

function elementOf(
  html: string,
  tag: string,
  attributes: ReadonlyMap<string, string>,
  end: number,
): HtmlElement {
  const next = html.indexOf("<", end);
  const raw = html.slice(end, next < 0 ? undefined : next);
  return {
    tag,
    attributes,
    attribute: (name) => attributes.get(name.toLowerCase()),
    value: attributes.get("value") ?? attributes.get("content") ?? attributes.get("href"),
    text: decoded(raw).replace(/\s+/g, " ").trim(),
  };
}

/** A tag, an id, a class, or an attribute with an optional comparison. */
const PARTS = [
  /([a-zA-Z][\w-]*|\*)/,
  /#([\w-]+)/,
  /\.([\w-]+)/,
  /\[\s*([\w:.-]+)\s*(?:([~^$*|]?=)\s*(?:"([^"]*)"|'([^']*)'|([^\s"'\]]+))\s*)?\]/,
];
const PART = PARTS.map(({ source }) => source).join("|");

function selectorOf(selector: string): Test {
  const tests: Test[] = [];
  const pattern = new RegExp(PART, "y");
  const text = typeof selector === "string" ? selector.trim() : "";
  while (pattern.lastIndex < text.length) {
    const at = pattern.lastIndex;
    const found = pattern.exec(text);
    // A second name can only be meant as a descendant.
    if (found === null || (at > 0 && found[1] !== undefined)) throw unknownSelector(selector);
    tests.push(testOf(found));
  }
  if (tests.length === 0) throw unknownSelector(selector);
  return (tag, attributes) => tests.every((test) => test(tag, attributes));
}

function testOf([, name, id, className, attribute, operator, ...values]: RegExpExecArray): Test {
  if (name === "*") return () => true;
  if (name !== undefined) return (tag) => tag === name.toLowerCase();
  if (id !== undefined) return (_, attributes) => attributes.get("id") === id;
  if (className !== undefined)
    return (_, attributes) => words(attributes.get("class")).includes(className);
  const key = (attribute ?? "").toLowerCase();
  if (operator === undefined) return (_, attributes) => attributes.has(key);
  const wanted = values.find((value) => value !== undefined) ?? "";
  const compare = COMPARISONS[operator] ?? (() => false);
  return (_, attributes) => {
    const value = attributes.get(key);
    return value !== undefined && compare(value, wanted);
  };
}

const COMPARISONS: Readonly<Record<string, (value: string, wanted: string) => boolean>> = {
  "=": (value, wanted) => value === wanted,
  "~=": (value, wanted) => words(value).includes(wanted),
  "^=": (value, wanted) => wanted !== "" && value.startsWith(wanted),
  "$=": (value, wanted) => wanted !== "" && value.endsWith(wanted),
  "*=": (value, wanted) => wanted !== "" && value.includes(wanted),
  "|=": (value, wanted) => value === wanted || value.startsWith(`${wanted}-`),
};

function words(text: string | undefined): readonly string[] {
  return text?.split(/\s+/) ?? [];
}

function unknownSelector(selector: unknown): TypeError {
  return new TypeError(
    `find(${JSON.stringify(selector)}): write one element by its own tag, as in ` +
      `"input[name=csrf]", "#id", "a.next[href]"; descendants, lists and pseudo-classes are not supported`,
  );
}

interface StartTag {
  readonly tag: string;
  readonly attributes: ReadonlyMap<string, string>;
  /** Offset after its ">". */
  readonly end: number;
}

function* startTags(html: string): Generator<StartTag> {
  let at = 0;
  for (;;) {
    const open = html.indexOf("<", at);
    if (open < 0) return;
    if (html.startsWith("<!--", open)) {
      const end = html.indexOf("-->", open + 4);
      if (end < 0) return;
      at = end + 3;
      continue;
    }
    const name = NAME.exec(html.slice(open + 1, open + 65))?.[0];
    if (name === undefined) {
      at = open + 1;
      continue;
    }
    const found = attributesFrom(html, open + 1 + name.length);
    if (found === null) return;
    const tag = name.toLowerCase();
    yield { tag, ...found };
    at = found.end;
    if (!RAW_CONTENT.has(tag)) continue;
    const close = new RegExp(`</${tag}`, "gi");
    close.lastIndex = at;
    const closed = close.exec(html);
    if (closed === null) return;
    at = closed.index;
  }
}

const NAME = /^[a-zA-Z][^\s/>]*/;
const ATTRIBUTE = /([^\s/>=][^\s/>=]*)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?/y;
const SPACE = /[\s/]*/y;

/** Null when the tag is never closed. */
function attributesFrom(html: string, from: number): Omit<StartTag, "tag"> | null {
  const attributes = new Map<string, string>();
  let at = from;
  for (;;) {
    SPACE.lastIndex = at;
    SPACE.test(html);
    at = SPACE.lastIndex;
    if (at >= html.length) return null;
    if (html[at] === ">") return { attributes, end: at + 1 };
    ATTRIBUTE.lastIndex = at;
    const found = ATTRIBUTE.exec(html);
    if (found === null) {
      // Skip a stray "=", as browsers do.
      at++;
      continue;
    }
    at = ATTRIBUTE.lastIndex;
    const [, name = "", double, single, bare] = found;
    const key = name.toLowerCase();
    // The first of two equal names wins.
    if (attributes.size < ATTRIBUTES_MAX && !attributes.has(key))
      attributes.set(key, decoded(double ?? single ?? bare ?? ""));
  }
}

const NAMED: Readonly<Record<string, string>> = {
  amp: "&",
  apos: "'",
  gt: ">",
  lt: "<",
  nbsp: "\u00a0",
  quot: '"',
};

/** Decodes numeric references and the names that HTML's own syntax needs; others stay unchanged. */
function decoded(text: string): string {
  if (!text.includes("&")) return text;
  return text.replace(
    /&(?:#(\d{1,7})|#[xX]([\da-fA-F]{1,6})|([a-zA-Z]{2,6}));/g,
    (all, dec, hex, name) => {
      if (name !== undefined) return NAMED[name as string] ?? (all as string);
      const code = dec === undefined ? Number.parseInt(hex as string, 16) : Number(dec);
      return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : "\ufffd";
    },
  );
}
