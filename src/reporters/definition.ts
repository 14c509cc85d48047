/** Definition of a back-end, known before it is used: `hyperscale reporters` shows it and opens reporters by it. */

import type { RunSummary } from "../core/load/results/model.ts";
import { summaryFrame } from "./frame.ts";
import { CLOSE_MS_MAX, INTERVAL_MS_DEFAULT, INTERVAL_MS_MAX, INTERVAL_MS_MIN } from "./limits.ts";
import { Delivery, type Transport } from "./pipeline/delivery.ts";
import type { Payload } from "./pipeline/payload-queue.ts";
import type { Frame, Reporter, WorkflowPhase } from "./reporter.ts";
import {
  ReporterError,
  type ReportSpec,
  Secrets,
  type Settings,
  type SettingValues,
  settingValues,
  targetOf,
} from "./settings.ts";

/** Evidence that a back-end understands what it is sent. */
type Evidence =
  /** A server of the vendor or project accepted the data and returned it. */
  | "real server"
  /** A third-party stand-in, such as the vendor's emulator. */
  | "emulator"
  /** Only a stub of our own, which checks form and signatures. */
  | "own stub"
  /** The output is a file: its bytes are compared with golden ones. */
  | "golden files";

export interface ReporterAbout {
  readonly name: string;
  readonly about: string;
  /** Example of the text behind `NAME=`. */
  readonly target: string;
  readonly settings: Settings;
  readonly evidence: Evidence;
  /** Name and version of the tested server: "prometheus 2.42". */
  readonly testedWith: string;
}

/** Dependencies that a reporter is given. */
export interface ReporterContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Called once, with the first problem. */
  readonly onProblem: (reporter: string, problem: string) => void;
}

export interface ReporterDefinition extends ReporterAbout {
  readonly open: (spec: ReportSpec, context: ReporterContext) => Reporter;
}

/** Arguments passed to the author of a definition. */
interface Opened<Described extends Settings> {
  readonly target: string;
  /** For messages: without credentials, and as a reference where it was given as one. */
  readonly shown: string;
  readonly settings: SettingValues<Described>;
  readonly scrub: (text: string) => string;
  readonly onProblem: (problem: string) => void;
}

type About<Described extends Settings> = Omit<ReporterAbout, "settings"> & {
  readonly settings: Described;
};

export function defineReporter<const Described extends Settings>(
  about: About<Described>,
  open: (opened: Opened<Described>) => Omit<Reporter, "name" | "target">,
): ReporterDefinition {
  return {
    ...about,
    open: (spec, { env, onProblem }) => {
      const { name } = about;
      const secrets = new Secrets(env);
      const target = targetOf(spec, secrets);
      const shown = spec.target;
      const settings = settingValues(about.settings, spec, secrets);
      const scrub = (text: string): string => secrets.scrub(text);
      const made = open({
        ...{ target, shown, settings, scrub },
        onProblem: (problem) => onProblem(name, problem),
      });
      return { name, target: shown, ...made };
    },
  };
}

/** Setting for how long a back-end may delay the end of a run. */
export const DEADLINE = {
  kind: "duration",
  about: "how long the end of the run waits for what is left, at most 10s",
  default: "10s",
} as const;

export function deadlineOf(deadlineMs: number, name: string): number {
  if (deadlineMs <= CLOSE_MS_MAX) return deadlineMs;
  throw new ReporterError(`report ${name}: deadline is at most 10s`);
}

/** Settings of every reporter that sends data during a run. */
const PUSH_SETTINGS = {
  every: {
    kind: "duration",
    about: "how often while the run goes on, 1s to 60s",
    default: `${INTERVAL_MS_DEFAULT / 1_000}s`,
  },
  deadline: DEADLINE,
} as const satisfies Settings;

/** A finished run. */
interface RunEnd {
  readonly summary: RunSummary;
  readonly labels: Frame["labels"];
  readonly phases: readonly WorkflowPhase[];
}

interface Push<Described extends Settings> extends About<Described> {
  readonly transport: (opened: Opened<Described & typeof PUSH_SETTINGS>) => Transport;
  /** Splits a frame into payloads of at most what the back-end accepts at once. */
  readonly encode: (frame: Frame, settings: SettingValues<Described>) => readonly Payload[];
  /** Extra payloads sent when the run has finished; `labels` are those of the run. */
  readonly atEnd?: (
    end: RunEnd,
    settings: SettingValues<Described>,
  ) => { readonly payloads: readonly Payload[]; readonly leftOut: number };
  /** Payloads can be concatenated, as lines can. */
  readonly joins?: boolean;
  /** Skips the summary: it adds nothing to the last interval. */
  readonly intervalsOnly?: boolean;
}

/** Defines a back-end that frames are pushed to, on top of the shared pipeline. */
export function definePush<const Described extends Settings>(
  push: Push<Described>,
): ReporterDefinition {
  const { atEnd, encode, intervalsOnly = false, joins = false, transport, ...about } = push;
  const settings: Described & typeof PUSH_SETTINGS = { ...about.settings, ...PUSH_SETTINGS };
  return defineReporter({ ...about, settings }, (opened) => {
    // The compiler cannot see that the common settings are among those of an unknown type.
    const values = opened.settings as SettingValues<Described> &
      SettingValues<typeof PUSH_SETTINGS>;
    const everyMs = intervalOf(values.every, about.name);
    const closeMs = deadlineOf(values.deadline, about.name);
    const way = transport(opened);
    const delivery = new Delivery({
      transport: way,
      ...{ joins, closeMs },
      ...{ scrub: opened.scrub, onProblem: opened.onProblem },
    });
    const offer = (frame: Frame): void => {
      delivery.leftOut(frame.leftOut, "the run has more series than are sent (2,000)");
      for (const payload of encode(frame, values)) delivery.offer(payload);
    };
    return {
      everyMs,
      start: async (_, signal) => {
        signal.addEventListener("abort", () => delivery.hurry(), { once: true });
        await way.prepare?.();
      },
      interval: offer,
      finish: async (summary, _, phases = []) => {
        const frame = summaryFrame(summary);
        if (!intervalsOnly) offer(frame);
        const more = atEnd?.({ summary, labels: frame.labels, phases }, values);
        if (more === undefined) return;
        delivery.leftOut(more.leftOut, "there are more spans than are sent (2,000)");
        for (const payload of more.payloads) delivery.offer(payload);
      },
      close: () => delivery.close(),
      counts: () => delivery.counts(),
    };
  });
}

function intervalOf(everyMs: number, name: string): number {
  if (everyMs >= INTERVAL_MS_MIN && everyMs <= INTERVAL_MS_MAX) return everyMs;
  throw new ReporterError(`report ${name}: every must be 1s to 60s`);
}

/** An address of HTTP, with a path if it has none of its own. */
export function httpTarget(name: string, target: string, path = ""): URL {
  let url: URL;
  try {
    url = new URL(target);
  } catch {
    throw new ReporterError(`report ${name}: its address must be a URL, http://… or https://…`);
  }
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw new ReporterError(`report ${name}: its address must begin with http:// or https://`);
  if (path !== "" && (url.pathname === "/" || url.pathname === "")) url.pathname = path;
  return url;
}

/** Splits a list for a back-end that accepts at most this many items at once. */
export function chunks<Item>(items: readonly Item[], most: number): Item[][] {
  const count = Math.ceil(items.length / most);
  return Array.from({ length: count }, (_, at) => items.slice(at * most, (at + 1) * most));
}
