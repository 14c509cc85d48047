/**
 * Reporters by name. A family is loaded when one of its names is used, so that others cost no startup time.
 * (REP-1, REP-6)
 */

import { didYouMean } from "../core/base/nearest.ts";
import type { ReporterContext, ReporterDefinition } from "./definition.ts";
import type { Reporter } from "./reporter.ts";
import { Reporting } from "./reporting.ts";
import { parseReport, ReporterError } from "./settings.ts";

interface Family {
  readonly title: string;
  readonly names: readonly string[];
  readonly load: () => Promise<readonly ReporterDefinition[]>;
}

/** In the order of `hyperscale reporters`. */
const FAMILIES: readonly Family[] = [
  {
    title: "Files",
    names: [
      ...["json", "html", "junit", "csv", "csv-series", "xml", "markdown", "gitlab", "github"],
      ...["ndjson", "samples"],
    ],
    load: async () => (await import("./file/reporters.ts")).definitions,
  },
  {
    title: "HTTP",
    names: [
      ...["influxdb", "prometheus", "pushgateway", "otlp"],
      ...["datadog", "newrelic", "honeycomb", "webhook"],
    ],
    load: async () => (await import("./http/reporters.ts")).definitions,
  },
  {
    title: "Lines and datagrams",
    names: ["statsd", "dogstatsd", "netdata", "telegraf-statsd", "graphite", "telegraf"],
    load: async () => (await import("./line/reporters.ts")).definitions,
  },
  {
    title: "Signed cloud APIs",
    names: [
      ...["cloudwatch", "eventbridge", "lambda", "timestream"],
      ...["bigquery", "bigtable", "cosmosdb", "snowflake"],
    ],
    load: async () => (await import("./cloud/reporters.ts")).definitions,
  },
  {
    title: "SQL",
    names: ["postgres", "mysql", "sqlite"],
    load: async () => (await import("./sql/reporters.ts")).definitions,
  },
  {
    title: "Databases and queues",
    names: ["mongodb", "cassandra", "kafka", "redis"],
    load: async () => (await import("./driver/reporters.ts")).definitions,
  },
  {
    title: "Object stores",
    names: ["s3", "gcs"],
    load: async () => (await import("./object/reporters.ts")).definitions,
  },
  {
    title: "For scrapes",
    names: ["metrics"],
    load: async () => (await import("./scrape/reporters.ts")).definitions,
  },
];

/** Parses `NAME=TARGET,setting=value,…`; rejects what can never work before anything is sent. */
async function openReporter(text: string, context: ReporterContext): Promise<Reporter> {
  const spec = parseReport(text);
  const family = FAMILIES.find(({ names }) => names.includes(spec.name));
  const definition = (await family?.load())?.find(({ name }) => name === spec.name);
  if (definition === undefined) {
    const names = FAMILIES.flatMap((one) => one.names);
    const hint = didYouMean(spec.name, names) || "; `hyperscale reporters` lists them";
    throw new ReporterError(`there is no reporter "${spec.name}"${hint}`);
  }
  return definition.open(spec, context);
}

/** All reporters of a run: as texts, or made by user code. */
export async function openReporting(
  reports: readonly (string | Reporter)[],
  context: ReporterContext,
): Promise<Reporting> {
  const once = withoutRepeated(reports);
  const names = once.map((one) => (typeof one === "string" ? parseReport(one).name : one.name));
  const opened = once.map((one, at) => {
    if (typeof one !== "string") return Promise.resolve(one);
    const isOnly = names.indexOf(names[at] ?? "") === names.lastIndexOf(names[at] ?? "");
    return openReporter(one, isOnly ? context : withTarget(context, parseReport(one).target));
  });
  const all = await Promise.all(opened);
  // Cores sample once, so a second share would be wrong.
  if (all.filter(({ sampledShare = 0 }) => sampledShare > 0).length > 1)
    throw new ReporterError("report samples: single calls go to one place");
  return new Reporting(all);
}

/** Adds the target to problems where several reporters have the same name. */
function withTarget(context: ReporterContext, target: string): ReporterContext {
  return {
    ...context,
    onProblem: (reporter, problem) => context.onProblem(`${reporter} ${target}`, problem),
  };
}

/** A target named both by the command line and by the file gets everything once, with the first settings. */
function withoutRepeated(reports: readonly (string | Reporter)[]): (string | Reporter)[] {
  const places = new Map<string | Reporter, string | Reporter>();
  for (const one of reports) {
    const place = typeof one === "string" ? placeOf(one) : one;
    if (!places.has(place)) places.set(place, one);
  }
  return [...places.values()];
}

/** Interval and deadline do not make another target. */
function placeOf(text: string): string {
  const { name, settings, target } = parseReport(text);
  const { deadline: _, every: __, ...rest } = settings;
  return JSON.stringify([name, target, Object.entries(rest).sort()]);
}

interface LoadedFamily {
  readonly title: string;
  readonly definitions: readonly ReporterDefinition[];
}

/** Every reporter, for lists. */
export async function allReporters(): Promise<readonly LoadedFamily[]> {
  return Promise.all(
    FAMILIES.map(async ({ load, title }) => ({ title, definitions: await load() })),
  );
}
