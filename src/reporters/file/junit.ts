/**
 * junit.xml for CI servers: one suite for the run, one per workflow; a test case per threshold, per
 * check and for the completion of the run and of each workflow.
 *
 *     <testsuites>
 *       <testsuite name="checkout.ts">            thresholds of the whole run, completion
 *       <testsuite name="checkout.ts / browse">   thresholds, checks, completion of one workflow
 *
 * A CI server turns red on any failure in this file, so the file fails exactly when the run did: a
 * check that failed now and then within what a threshold tolerates is a passed case with a remark.
 */

import { doubtOf, isRejected, trustOf } from "../../core/load/results/doubt.ts";
import { formatCount, formatPercent, formatSeconds } from "../../core/load/results/format.ts";
import type {
  CheckSummary,
  RunSummary,
  ThresholdOutcome,
  WorkflowSummary,
} from "../../core/load/results/model.ts";
import { partialOf } from "../../core/load/results/partial.ts";

interface TestCase {
  readonly name: string;
  readonly outcome: "passed" | "failure" | "error" | "skipped";
  /** Expected and actual value; a remark when passed. */
  readonly message: string;
  readonly details: string;
}

interface Suite {
  readonly name: string;
  readonly seconds: number;
  readonly properties: readonly (readonly [string, string])[];
  readonly cases: readonly TestCase[];
}

export function junitXml(summary: RunSummary): string {
  const suites = [
    runSuite(summary),
    ...summary.workflows.map((each) => workflowSuite(summary, each)),
  ];
  const cases = suites.flatMap((suite) => suite.cases);
  // Some consumers' schemas allow `skipped` on suites only.
  const { skipped: _, ...total } = totals(cases);
  const counts = attributes({ ...total, time: summary.durationSeconds.toFixed(3) });
  const timestamp = summary.startedAt.replace(/\.\d+/, "").replace(/Z$/, "");
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites ${attributes({ name: summary.name })} ${counts}>`,
    ...suites.map((suite) => suiteXml(suite, timestamp)),
    "</testsuites>",
    "",
  ].join("\n");
}

function runSuite(summary: RunSummary): Suite {
  const cases = summary.thresholds
    .filter(({ workflow }) => !summary.workflows.some(({ name }) => name === workflow))
    .map(thresholdCase);
  return {
    name: summary.name,
    seconds: summary.durationSeconds,
    properties: [
      ["verdict", summary.verdict],
      ["hyperscale", summary.environment.hyperscale],
      ["command", summary.environment.command],
      ["generator.limited", String(summary.generator.limited)],
      ["trusted", String(trustOf(summary).trusted)],
      ...clusterProperties(summary),
    ],
    cases: [completionOfRun(summary), ...cases],
  };
}

/** Where a job of a cluster ran, and how much of it is missing from the results. */
function clusterProperties({ cluster, lost }: RunSummary): [string, string][] {
  if (cluster === undefined) return [];
  const isKnown = lost.every(({ requestsNotCounted }) => requestsNotCounted !== null);
  const uncounted = lost.reduce((sum, one) => sum + (one.requestsNotCounted ?? 0), 0);
  return [
    ["cluster.job", cluster.jobId],
    ...cluster.datacenters.map(({ name, status, workers }): [string, string] => [
      `cluster.datacenter.${name}`,
      `${status}, ${workers} workers`,
    ]),
    ["cluster.requestsNotCounted", isKnown ? String(uncounted) : "not known"],
  ];
}

function workflowSuite(summary: RunSummary, workflow: WorkflowSummary): Suite {
  const requests = workflow.steps.reduce((sum, step) => sum + step.requests, 0);
  const failed = workflow.steps.reduce((sum, step) => sum + step.failed, 0);
  return {
    name: `${summary.name} / ${workflow.name}`,
    seconds: workflow.elapsedSeconds,
    properties: [
      ["load", workflow.load],
      ["requests", String(requests)],
      ["failed", String(failed)],
    ],
    cases: [
      completionOf(workflow),
      ...summary.thresholds.filter((each) => each.workflow === workflow.name).map(thresholdCase),
      ...workflow.checks.map((check) => checkCase(check, tolerates(summary, workflow))),
    ],
  };
}

function completionOfRun(summary: RunSummary): TestCase {
  const name = "run completes";
  const partial = partialOf(summary);
  if (partial !== null) {
    const message = `the result is partial: ${partial}`;
    return { name, outcome: "error", message, details: lossLines(summary).join("\n") };
  }
  if (summary.verdict === "interrupted") {
    const message = summary.reasons[0] ?? "the run was interrupted";
    return { name, outcome: "error", message, details: summary.reasons.join("\n") };
  }
  // A failed verdict that no threshold and no workflow explains must still turn the file red.
  const explained =
    summary.thresholds.some(({ passed }) => !passed) ||
    summary.workflows.some(({ status }) => status === "failed" || status === "interrupted");
  if (summary.verdict === "failed" && !explained) {
    const message = summary.reasons[0] ?? "the run failed";
    return { name, outcome: "failure", message, details: summary.reasons.join("\n") };
  }
  const details = [...lossLines(summary), ...summary.notes].join("\n");
  if (isRejected(summary)) {
    const message = `the result is not to be trusted: ${doubtOf(summary)}`;
    return { name, outcome: "failure", message, details };
  }
  return { name, outcome: "passed", message: "", details };
}

function lossLines({ lost }: RunSummary): string[] {
  return lost.map(({ atSeconds, cost, what }) => `${formatSeconds(atSeconds)}: ${what}; ${cost}`);
}

function completionOf({ status, error }: WorkflowSummary): TestCase {
  const name = "workflow completes";
  if (status === "completed") return { name, outcome: "passed", message: "", details: "" };
  const outcome = status === "not run" ? "skipped" : "error";
  return { name, outcome, message: error ?? `the workflow was ${status}`, details: "" };
}

function thresholdCase(threshold: ThresholdOutcome): TestCase {
  const { expression, actualText, aborted } = threshold;
  const name = `threshold: ${expression}`;
  if (threshold.passed) {
    return { name, outcome: "passed", message: "", details: `actual: ${actualText}` };
  }
  const message = `expected ${expression}, actual ${actualText}`;
  const details = `expected: ${expression}\nactual:   ${actualText}`;
  const ending = aborted ? "\nThis threshold ended the run early." : "";
  return { name, outcome: "failure", message, details: details + ending };
}

function checkCase({ name, passed, failed }: CheckSummary, tolerated: boolean): TestCase {
  const total = passed + failed;
  const share = formatPercent(total === 0 ? 0 : failed / total);
  const counts = `${formatCount(failed)} of ${formatCount(total)} failed (${share})`;
  const title = `check: ${name}`;
  if (failed === 0) return { name: title, outcome: "passed", message: "", details: counts };
  if (tolerated) {
    const details = `${counts}; within the thresholds of this run`;
    return { name: title, outcome: "passed", message: "", details };
  }
  return { name: title, outcome: "failure", message: counts, details: counts };
}

/** The user's threshold on checks held, or the run passed all the same. */
function tolerates(summary: RunSummary, workflow: WorkflowSummary): boolean {
  if (summary.verdict === "passed") return true;
  return summary.thresholds.some(
    (threshold) =>
      threshold.passed &&
      (threshold.workflow === null || threshold.workflow === workflow.name) &&
      /check/i.test(threshold.expression),
  );
}

function suiteXml(suite: Suite, timestamp: string): string {
  const counts = { ...totals(suite.cases), time: suite.seconds.toFixed(3), timestamp };
  const properties = suite.properties.map(
    ([name, value]) => `      <property ${attributes({ name, value })}/>`,
  );
  return [
    `  <testsuite ${attributes({ name: suite.name, ...counts })}>`,
    "    <properties>",
    ...properties,
    "    </properties>",
    ...suite.cases.map((each) => caseXml(each, suite.name)),
    "  </testsuite>",
  ].join("\n");
}

function caseXml({ name, outcome, message, details }: TestCase, classname: string): string {
  const head = `    <testcase ${attributes({ name, classname, time: "0" })}`;
  if (outcome === "passed" && details === "") return `${head}/>`;
  const body =
    outcome === "passed"
      ? `<system-out>${escapeXml(details)}</system-out>`
      : outcome === "skipped"
        ? `<skipped ${attributes({ message })}/>`
        : `<${outcome} ${attributes({ message, type: outcome })}>${escapeXml(details)}</${outcome}>`;
  return `${head}>\n      ${body}\n    </testcase>`;
}

function totals(cases: readonly TestCase[]) {
  const of = (outcome: TestCase["outcome"]): string =>
    String(cases.filter((each) => each.outcome === outcome).length);
  return {
    tests: String(cases.length),
    failures: of("failure"),
    errors: of("error"),
    skipped: of("skipped"),
  };
}

function attributes(values: Readonly<Record<string, string>>): string {
  return Object.entries(values)
    .map(
      ([name, value]) => `${name}="${escapeXml(value).replace(/[\t\n\r]/g, characterReference)}"`,
    )
    .join(" ");
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&apos;",
};

/** Text for XML 1.0: escapes markup, and replaces characters XML cannot contain by U+FFFD. */
export function escapeXml(text: string): string {
  return text
    .replace(/\p{Surrogate}/gu, "\ufffd")
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd")
    .replace(/[&<>"']/g, (character) => ENTITIES[character] ?? "")
    .replaceAll("\r", "&#13;");
}

function characterReference(character: string): string {
  return `&#${character.codePointAt(0)};`;
}
