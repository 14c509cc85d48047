/** Whether the metrics of a run can be trusted, and why not, independent of its verdict. */

import { generatorTitle } from "./generator-health.ts";
import type { RunSummary, Trust } from "./model.ts";
import { partialOf } from "./partial.ts";

type Judged = Pick<RunSummary, "generator" | "lost" | "cluster">;

/** Results of earlier versions have no `trust`: it is derived from the rest. */
export function trustOf(summary: Judged & Pick<RunSummary, "trust">): Trust {
  return summary.trust ?? judgedTrust(summary);
}

/** Sets `trust` according to the rest of the summary. */
export function withTrust(summary: RunSummary): RunSummary {
  return { ...summary, trust: judgedTrust(summary) };
}

/** An untrusted result fails the run that asked for it, though its verdict is passed. */
export function withTrustRequired(summary: RunSummary): RunSummary {
  return { ...summary, trust: { ...trustOf(summary), required: true } };
}

/** Whether a run that passed is rejected because trust was required and its result is untrusted. */
export function isRejected(summary: RunSummary): boolean {
  const { required = false, trusted } = trustOf(summary);
  return summary.verdict === "passed" && required && !trusted;
}

function judgedTrust(summary: Judged): Trust {
  const { generator, lost } = summary;
  const partial = partialOf(summary);
  const title = generatorTitle(generator);
  const reasons: Trust["reasons"] = [
    ...(partial === null
      ? []
      : [{ code: "partial" as const, text: `the result is partial: ${partial}` }]),
    ...(title === null
      ? []
      : [
          {
            code: generator.limited ? ("generator-limited" as const) : ("generator-noisy" as const),
            text: `${title.charAt(0).toLowerCase()}${title.slice(1)}`,
          },
        ]),
    ...(lost.length > 0 ? [{ code: "lost" as const, text: "parts of the run were lost" }] : []),
  ];
  return { trusted: reasons.length === 0, reasons };
}

/** "the load generator was the limit, not the target"; null when the metrics are trusted. */
export function doubtOf(summary: Judged & Pick<RunSummary, "trust">): string | null {
  const { reasons, trusted } = trustOf(summary);
  return trusted ? null : reasons.map(({ text }) => text).join(", and ");
}
