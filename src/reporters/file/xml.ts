/** Every metric of a run as XML: one element per point. Labels of the run are on its own element, once. */

import type { RunSummary } from "../../core/load/results/model.ts";
import { framePoints } from "../encoders/point-json.ts";
import { summaryFrame } from "../frame.ts";

export function summaryXml(summary: RunSummary): string {
  const { durationSeconds, name, runId = "", startedAt, tags = {}, title, verdict } = summary;
  const run = attributes({
    name,
    ...(title === undefined ? {} : { title }),
    runId,
    startedAt,
    durationSeconds: `${durationSeconds}`,
    verdict,
  });
  const tagged = Object.entries(tags).map(
    ([tag, value]) => `  <tag${attributes({ name: tag, value })}/>\n`,
  );
  const frame = summaryFrame(summary);
  const points = framePoints(frame).map(({ figure, labels, scope, unit, values }) => {
    const named = attributes({ scope, name: figure, unit });
    const labelElements = Object.entries(labels)
      .filter(([label, value]) => frame.labels[label] !== value)
      .map(([label, value]) => `\n    <label${attributes({ name: label, value })}/>`);
    const numbers = Object.entries(values).map(
      ([value, amount]) => `\n    <value${attributes({ name: value })}>${amount}</value>`,
    );
    return `  <figure${named}>${labelElements.join("")}${numbers.join("")}\n  </figure>\n`;
  });
  return `<?xml version="1.0" encoding="UTF-8"?>\n<run${run}>\n${tagged.join("")}${points.join("")}</run>\n`;
}

function attributes(all: Readonly<Record<string, string>>): string {
  return Object.entries(all)
    .map(([name, value]) => ` ${name}="${escaped(value)}"`)
    .join("");
}

/** Drops characters that XML 1.0 cannot contain. */
function escaped(text: string): string {
  return text
    .replace(/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, "")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replace(/[\t\n\r]/g, " ");
}
