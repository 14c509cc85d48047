/** What there is to know of a back-end before it is used: `hyperscale reporters` shows it, and opens by it. */

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

/** How we know that a back-end understands what it is sent. */
type Evidence =
  /** A server of the vendor or project took it and gave it back. */
  | "real server"
  /** A stand-in that others made, such as the vendor's emulator. */
  | "emulator"
  /** Only a server of our own, which checks form and signatures. */
  | "own stub"
  /** It is a file: its bytes are compared with kept ones. */
  | "golden files";

export interface ReporterAbout {
  readonly name: string;
  readonly about: string;
  /** What stands behind `NAME=`, for example. */
  readonly target: string;
  readonly settings: Settings;
  readonly evidence: Evidence;
  /** Against what: "prometheus 2.42". */
  readonly testedWith: string;
}

/** What the surroundings of a reporter give it. */
export interface ReporterContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Told once of the first thing that goes wrong. */
  readonly onProblem: (reporter: string, problem: string) => void;
}

export interface ReporterDefinition extends ReporterAbout {
  readonly open: (spec: ReportSpec, context: ReporterContext) => Reporter;
}

/** What the author of a definition gets. */
interface Opened<Described extends Settings> {
  readonly target: string;
  /** For messages: without credentials, and a reference where it was one. */
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

/** How long a back-end may keep the end of a run waiting. */
export const DEADLINE = {
  kind: "duration",
  about: "how long the end of the run waits for what is left, at most 10s",
  default: "10s",
} as const;

export function deadlineOf(deadlineMs: number, name: string): number {
  if (deadlineMs <= CLOSE_MS_MAX) return deadlineMs;
  throw new ReporterError(`report ${name}: deadline is at most 10s`);
}

/** Settings of everything that is sent while a run goes on. */
const PUSH_SETTINGS = {
  every: {
    kind: "duration",
    about: "how often while the run goes on, 1s to 60s",
    default: `${INTERVAL_MS_DEFAULT / 1_000}s`,
  },
  deadline: DEADLINE,
} as const satisfies Settings;

/** A run that is over. */
interface RunEnd {
  readonly summary: RunSummary;
  readonly labels: Frame["labels"];
  readonly phases: readonly WorkflowPhase[];
}

interface Push<Described extends Settings> extends About<Described> {
  readonly transport: (opened: Opened<Described & typeof PUSH_SETTINGS>) => Transport;
  /** A frame as payloads of at most what the back-end takes at once. */
  readonly encode: (frame: Frame, settings: SettingValues<Described>) => readonly Payload[];
  /** What else it gets when the run is over; `labels` are those of the run. */
  readonly atEnd?: (
    end: RunEnd,
    settings: SettingValues<Described>,
  ) => { readonly payloads: readonly Payload[]; readonly leftOut: number };
  /** Payloads may be put behind each other: lines. */
  readonly joins?: boolean;
  /** The summary says nothing to it that the last interval did not. */
  readonly intervalsOnly?: boolean;
}

/** A back-end that frames are pushed to is data over the shared pipeline. */
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

/** Cuts a list where a back-end takes only so many at once. */
export function chunks<Item>(items: readonly Item[], most: number): Item[][] {
  const count = Math.ceil(items.length / most);
  return Array.from({ length: count }, (_, at) => items.slice(at * most, (at + 1) * most));
}
