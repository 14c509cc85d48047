/** Files of a run as reporters: `--report junit=results/junit.xml` writes one where a tool expects it. */

import { appendFile, rename, rm, writeFile } from "node:fs/promises";
import type { RunSummary } from "../../core/load/results/model.ts";
import { definePush, defineReporter, type ReporterDefinition } from "../definition.ts";
import { pointLines } from "../encoders/point-json.ts";
import { annotations } from "./annotations.ts";
import { appending, prepare, unfinished } from "./appending.ts";
import { seriesCsv, stepsCsv } from "./csv.ts";
import { gitlabMetrics } from "./gitlab.ts";
import { reportHtml } from "./html.ts";
import { junitXml } from "./junit.ts";
import { summaryMarkdown } from "./markdown.ts";
import { samples } from "./samples.ts";
import { summaryJson } from "./summary-json.ts";
import { summaryXml } from "./xml.ts";

interface Document {
  readonly name: string;
  readonly about: string;
  readonly target: string;
  readonly text: (summary: RunSummary) => string | Promise<string>;
}

const DOCUMENTS: readonly Document[] = [
  { name: "json", about: "summary.json", target: "summary.json", text: summaryJson },
  { name: "html", about: "the report page", target: "report.html", text: reportHtml },
  { name: "junit", about: "JUnit XML for CI", target: "junit.xml", text: junitXml },
  { name: "csv", about: "one line per step", target: "steps.csv", text: stepsCsv },
  {
    name: "csv-series",
    about: "one line per step and window",
    target: "series.csv",
    text: seriesCsv,
  },
  { name: "xml", about: "every figure as XML", target: "summary.xml", text: summaryXml },
  { name: "markdown", about: "a page for people", target: "summary.md", text: summaryMarkdown },
  {
    name: "gitlab",
    about: "GitLab's metrics report (artifacts:reports:metrics)",
    target: "metrics.txt",
    text: gitlabMetrics,
  },
];

/** A document written when the run has finished, under a temporary name until it is complete. */
function documentReporter({ about, name, target, text }: Document): ReporterDefinition {
  return defineReporter(
    {
      name,
      about,
      target,
      settings: {},
      evidence: "golden files",
      testedWith: "bytes of a kept file",
    },
    ({ target: file }) => ({
      last: true,
      start: () => prepare(name, file),
      finish: async (summary) => {
        await writeFile(unfinished(file), await text(summary));
        await rename(unfinished(file), file);
      },
      close: async () => rm(unfinished(file), { force: true }),
    }),
  );
}

const ndjson = definePush({
  name: "ndjson",
  about: "every point as a line of JSON, while the run goes on",
  target: "points.ndjson",
  settings: {},
  evidence: "golden files",
  testedWith: "bytes of a kept file",
  joins: true,
  transport: ({ target }) => appending("ndjson", target),
  encode: (frame) => [
    {
      body: Buffer.from(pointLines(frame)),
      points: frame.points.length,
    },
  ],
});

/** Appends to the output of earlier steps of the job. */
const github = defineReporter(
  {
    name: "github",
    about: "the summary of a GitHub Actions job, and what failed as annotations",
    target: "",
    settings: {
      file: { kind: "text", about: "the file of the job", default: "env:GITHUB_STEP_SUMMARY" },
      annotations: { kind: "switch", about: "thresholds that were missed", default: "true" },
    },
    ...{ evidence: "golden files", testedWith: "bytes of a kept file" },
  },
  ({ settings: { annotations: wanted, file } }) => ({
    last: true,
    start: async () => {},
    finish: async (summary) => {
      // GitHub reads commands on both outputs; stderr carries no results.
      if (wanted) for (const line of annotations(summary)) process.stderr.write(`${line}\n`);
      await appendFile(file, `${summaryMarkdown(summary)}\n`);
    },
    close: async () => {},
  }),
);

export const definitions: readonly ReporterDefinition[] = [
  ...DOCUMENTS.map(documentReporter),
  github,
  ndjson,
  samples,
];
