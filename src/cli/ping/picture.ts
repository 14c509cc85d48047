/** Output of `hyperscale ping`: facts of the answer, then a bar per phase, each where it happened. */

import { clean } from "../../core/base/terminal-text.ts";
import { formatBytes, formatMs } from "../../core/load/results/format.ts";
import type { PingFailure } from "./failure.ts";
import type { PhaseTimes, PingAnswer } from "./probe.ts";

export interface PictureOptions {
  readonly colour: boolean;
  readonly columns: number;
}

const BAR_COLUMNS_MAX = 48;
const LABEL_COLUMNS = 12;
const TIME_COLUMNS = 9;
/** Characters shown of a text answer. */
const ANSWER_CHARACTERS = 200;
/** A certificate that expires sooner is pointed out. */
const EXPIRY_WARNING_DAYS = 21;

type Colour = "green" | "yellow" | "red" | "cyan" | "blue" | "magenta" | "dim" | "bold";

const CODES: Readonly<Record<Colour, number>> = {
  green: 32,
  yellow: 33,
  red: 31,
  cyan: 36,
  blue: 34,
  magenta: 35,
  dim: 2,
  bold: 1,
};

const PHASES: readonly (readonly [keyof PhaseTimes, string, Colour])[] = [
  ["dns", "DNS", "cyan"],
  ["connect", "connect", "blue"],
  ["tls", "TLS", "magenta"],
  ["login", "login", "cyan"],
  ["firstByte", "first byte", "yellow"],
  ["body", "body", "green"],
];

export function drawAnswer(answer: PingAnswer, options: PictureOptions): string {
  const paint = painter(options);
  return [
    ...facts(answer, paint),
    "",
    ...bars(answer.phases, answer.totalMs, options),
    `  ${"total".padEnd(LABEL_COLUMNS)}${paint("bold", time(answer.totalMs))}`,
  ].join("\n");
}

function facts(answer: PingAnswer, paint: Paint): readonly string[] {
  const { status, statusText, tls } = answer;
  const colour: Colour = status < 300 ? "green" : status < 400 ? "yellow" : "red";
  const place = answer.address.includes(":") ? `[${answer.address}]` : answer.address;
  const head = answer.headBytes === 0 ? "" : `, ${formatBytes(answer.headBytes)} head`;
  const lines = [
    // Most protocols have no numeric statuses.
    status === 0
      ? fact("answer", clean(statusText).slice(0, ANSWER_CHARACTERS))
      : fact("status", paint(colour, `${status} ${clean(statusText)}`.trim())),
    fact("address", `${place}:${answer.port}`),
    fact("protocol", answer.protocol),
    fact("size", `${formatBytes(answer.bodyBytes)}${head === "" ? "" : " body"}${head}`),
  ];
  if (tls === null) return lines;
  const days = tls.expiresInDays;
  const left = days < 0 ? `${-days} days ago` : `in ${days} days`;
  const expiry = `${days < 0 ? "expired" : "expires"} ${tls.expiresAt.slice(0, 10)} (${left})`;
  lines.push(
    fact("TLS", `${tls.version}, ${tls.cipher}`),
    fact(
      "certificate",
      `${clean(tls.subject)} by ${clean(tls.issuer)}, ` +
        `${days < EXPIRY_WARNING_DAYS ? paint("red", expiry) : expiry}`,
    ),
  );
  if (tls.distrust !== null)
    lines.push(fact("", paint("red", `not trusted: ${clean(tls.distrust)}`)));
  return lines;
}

function fact(label: string, value: string): string {
  return `  ${label.padEnd(LABEL_COLUMNS)}${value}`;
}

/** A waterfall: every bar begins where the previous one ended. */
function bars(phases: PhaseTimes, totalMs: number, options: PictureOptions): readonly string[] {
  const paint = painter(options);
  const free = options.columns - LABEL_COLUMNS - TIME_COLUMNS - 6;
  const width = Math.max(10, Math.min(BAR_COLUMNS_MAX, free));
  const lines: string[] = [];
  let passedMs = 0;
  for (const [key, label, colour] of PHASES) {
    const ms = phases[key] ?? null;
    if (ms === null) continue;
    const from = Math.min(width - 1, Math.round((passedMs / totalMs) * width));
    passedMs += ms;
    const to = Math.max(from + 1, Math.round((passedMs / totalMs) * width));
    const bar = `${" ".repeat(from)}${paint(colour, "█".repeat(to - from))}`;
    lines.push(`  ${label.padEnd(LABEL_COLUMNS)}${time(ms)}  ${bar}`);
  }
  return lines;
}

/** For --count: the spread of each phase over all answers. */
export function drawSpread(answers: readonly PingAnswer[], sent: number): string {
  const rows = PHASES.map(([key, label]) => ({
    label,
    values: answers.map(({ phases }) => phases[key] ?? null).filter((value) => value !== null),
  }));
  rows.push({ label: "total", values: answers.map(({ totalMs }) => totalMs) });
  const names = ["min", "mean", "max"].map((name) => name.padStart(TIME_COLUMNS)).join("");
  const head = `  ${"".padEnd(LABEL_COLUMNS)}${names}`;
  const lines = rows
    .filter(({ values }) => values.length > 0)
    .map(({ label, values }) => {
      const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
      const columns = [Math.min(...values), mean, Math.max(...values)].map(time).join("");
      return `  ${label.padEnd(LABEL_COLUMNS)}${columns}`;
    });
  return [`${answers.length} of ${sent} answered`, head, ...lines].join("\n");
}

export function drawLine(answer: PingAnswer, index: number): string {
  const { status, address, bodyBytes, totalMs } = answer;
  const shown = status === 0 ? clean(answer.statusText).slice(0, TIME_COLUMNS) : status;
  return `  ${String(index).padStart(3)}  ${shown}  ${address}  ${formatBytes(bodyBytes)}  ${formatMs(totalMs)}`;
}

export function drawFailure(failure: PingFailure, options: PictureOptions): string {
  const paint = painter(options);
  const after = `after ${formatMs(failure.totalMs)}, during ${failure.phase}`;
  const code = failure.code === "" || failure.code === "PING_TIMEOUT" ? "" : ` [${failure.code}]`;
  const lines = [
    `  ${paint("red", failure.kind)}: ${clean(failure.message)}${paint("dim", code)}`,
    `  ${paint("dim", after)}`,
  ];
  return [...lines, ...(failure.hint === "" ? [] : [`  ${failure.hint}`])].join("\n");
}

function time(ms: number): string {
  return formatMs(ms).padStart(TIME_COLUMNS);
}

type Paint = (colour: Colour, text: string) => string;

function painter({ colour }: PictureOptions): Paint {
  return (name, text) => (colour && text !== "" ? `\x1b[${CODES[name]}m${text}\x1b[0m` : text);
}
