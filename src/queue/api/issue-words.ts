/** Plain texts for invalid parameters: those of the validator name its own types. */

import type { z } from "zod";

const KINDS: Readonly<Record<string, string>> = {
  int: "a whole number",
  number: "a number",
  string: "a text",
  boolean: "true or false",
  array: "a list",
  object: "an object",
  record: "an object",
};

const UNITS: Readonly<Record<string, string>> = { string: " characters", array: " entries" };

export function issueWords(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case "too_big": {
      const most = issue.inclusive === false ? "less than" : "at most";
      return `must ${bound(issue.origin, most, issue.maximum)}`;
    }
    case "too_small": {
      const least = issue.inclusive === false ? "more than" : "at least";
      return `must ${bound(issue.origin, least, issue.minimum)}`;
    }
    case "invalid_type":
      if (issue.message.endsWith("received undefined")) return "is missing";
      return `must be ${KINDS[issue.expected] ?? issue.expected}`;
    case "invalid_value":
      return `must be ${issue.values.map((value) => JSON.stringify(value)).join(" or ")}`;
    case "unrecognized_keys":
      return `has no field ${issue.keys.map((key) => JSON.stringify(key)).join(", ")}`;
    default:
      return issue.message;
  }
}

function bound(origin: string, relation: string, limit: number | bigint): string {
  const unit = UNITS[origin];
  const number = limit.toLocaleString("en-US");
  return unit === undefined ? `be ${relation} ${number}` : `have ${relation} ${number}${unit}`;
}
