/** Topics and subscription filters: levels between slashes, `+` for one, `#` for all that follow. */

export function matchesFilter(topic: string, filter: string): boolean {
  const own = filter.startsWith("$share/") ? filter.split("/").slice(2).join("/") : filter;
  // Topics of the server itself ("$SYS/…") match only filters that begin with "$".
  if (topic.startsWith("$") !== own.startsWith("$")) return false;
  const levels = topic.split("/");
  const wanted = own.split("/");
  for (const [at, level] of wanted.entries()) {
    if (level === "#") return true;
    if (at >= levels.length || (level !== "+" && level !== levels[at])) return false;
  }
  return wanted.length === levels.length;
}

export function checkTopic(topic: unknown): string {
  if (typeof topic === "string" && topic !== "" && !/[+#\0]/.test(topic) && fits(topic))
    return topic;
  throw new TypeError(`${JSON.stringify(topic)} is not a topic to publish to`);
}

export function checkFilter(filter: unknown): string {
  const levels = typeof filter === "string" ? filter.split("/") : [];
  const wellFormed = levels.every(
    (level, at) =>
      !/[+#]/.test(level) || level === "+" || (level === "#" && at === levels.length - 1),
  );
  if (
    typeof filter === "string" &&
    filter !== "" &&
    wellFormed &&
    !filter.includes("\0") &&
    fits(filter)
  )
    return filter;
  throw new TypeError(`${JSON.stringify(filter)} is not a topic filter`);
}

/** Strings on the wire have a length of two bytes. */
function fits(text: string): boolean {
  return Buffer.byteLength(text) <= 65_535;
}
