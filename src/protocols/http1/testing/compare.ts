/**
 * \n Compares our outcome with llhttp's for the same response.
 *
 * Both complete: same status, same body, same end, and ours never keeps a connection that llhttp would close. Only one
 * complete: for a reason listed here. When neither completes, the response may be called malformed or incomplete: we
 * check a head when it has ended, llhttp while it arrives.
 */

import type { GeneratedAnswer } from "./generate.ts";
import { readWithLlhttp } from "./llhttp.ts";
import { type AnswerRead, readAnswer } from "./read-answer.ts";

/** Our problem → where llhttp accepts the response, and why we do not. */
export const STRICTER: ReadonlyMap<string, string> = new Map([
  [
    "the status line is not HTTP/1.x",
    "llhttp takes HTTP/0.9 and 2.0, control characters in the reason, and empty " +
      "lines before the status line; an answer to a request of ours needs none of them",
  ],
  ["two Transfer-Encoding headers", "llhttp lets the last one count"],
  [
    "Transfer-Encoding is not a valid list",
    "llhttp reads until close when chunked is not the last coding, or there is none",
  ],
  ["Content-Length is not a number", "llhttp takes any number of leading zeros; we take 15 digits"],
  ["a chunk size is too large", "llhttp takes any number of leading zeros; we take 13 digits"],
  ["a chunk extension contains a control character", "llhttp takes DEL inside a quoted value"],
]);

/** Prefix of llhttp's problem → where we accept the response, and why. */
export const LOOSER: ReadonlyMap<string, string> = new Map([
  [
    "Invalid character in chunk extensions",
    "we read over extensions; no visible character in them can move the end of the line",
  ],
  ["Data after `Connection: close`", "llhttp takes an interim answer of HTTP/1.0 as the last one"],
]);

/** A tab after a value is white space (RFC 9110 §5.5); llhttp treats it as part of these two. */
const TAB_BEHIND_FRAMING = /^(content-length|transfer-encoding):[^\r\n]*\t[ \t]*\r$/im;

interface Comparison {
  readonly ours: AnswerRead;
  readonly theirs: AnswerRead;
  /** Null when the two agree as far as required; otherwise the difference. */
  readonly problem: string | null;
}

/** Ours reads the given pieces, llhttp the whole. */
export function compareWithLlhttp(answer: GeneratedAnswer, pieces: readonly Buffer[]): Comparison {
  const ours = readAnswer(pieces, answer.toHead);
  const theirs = readWithLlhttp([answer.bytes], answer.toHead);
  const excused = TAB_BEHIND_FRAMING.test(answer.bytes.toString("latin1"));
  return { ours, theirs, problem: excused ? null : disagreement(ours, theirs, answer.toHead) };
}

function disagreement(ours: AnswerRead, theirs: AnswerRead, toHead: boolean): string | null {
  if (ours.end !== "complete") {
    if (theirs.end !== "complete") return null;
    if (ours.end === "broken" && STRICTER.has(ours.problem ?? "")) return null;
    return `llhttp complete, ours ${ours.end}: ${ours.problem}`;
  }
  if (theirs.end !== "complete") {
    const known = [...LOOSER.keys()].some((problem) => theirs.problem?.startsWith(problem));
    return known ? null : `ours complete, llhttp ${theirs.end}: ${theirs.problem}`;
  }
  if (ours.status !== theirs.status) return `status ${ours.status}, llhttp ${theirs.status}`;
  if (ours.body !== theirs.body) return "different bodies";
  if (ours.taken !== theirs.taken) return `ends at ${ours.taken}, llhttp at ${theirs.taken}`;
  // A response to HEAD never has a body; llhttp is unsure and closes.
  if (ours.keepAlive && !theirs.keepAlive && !toHead)
    return "ours keeps a connection that llhttp closes";
  return null;
}
