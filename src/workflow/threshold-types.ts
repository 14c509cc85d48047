/**
 * Thresholds, checked by the compiler: an impossible one, where its text is a literal, turns into a sentence that the
 * editor shows. It reads the path before the comparison and nothing else:
 *
 *   [workflow.]metric[{step=name}].figure
 *
 * Anything unknown passes: text that is no literal, names in quotes, workflows that another part of the file may
 * export, metrics that are not listed. Those are checked before the run.
 */

import type { Duration } from "../core/base/duration.ts";
import type { FiguresOfKind } from "../core/load/results/threshold-names.ts";
import type {
  ThresholdAlias,
  ThresholdFigures,
  ThresholdMetrics,
} from "../core/load/results/thresholds.ts";
import type { Metric, MetricKind } from "./metrics.ts";

interface ThresholdObject<Text> {
  /** For example "latency.p99 < 200ms". */
  readonly threshold: Text;
  /** Ends the run as soon as it fails. */
  readonly abortOnFail?: boolean;
  /** Not evaluated before this much of the run is over. */
  readonly after?: Duration;
}

export type ThresholdOption = string | ThresholdObject<string>;
export type ThresholdList = readonly ThresholdOption[];
export type MetricList = readonly Metric[];

/** Names known at a threshold; `string` where any name is possible. */
export interface KnownNames<
  Workflow extends string = string,
  Step extends string = string,
  /** Custom metrics with their kinds. */
  Custom = Readonly<Record<string, MetricKind>>,
> {
  readonly workflow: Workflow;
  readonly step: Step;
  readonly metrics: Custom;
}

/** The custom metrics of a list, by name. */
export type MetricsOf<List extends MetricList> = {
  readonly [One in List[number] as One["name"]]: One["kind"];
};

/** The list itself; with the reason in place of an impossible threshold. */
export type CheckedThresholds<List extends ThresholdList, Known extends KnownNames> = {
  readonly [At in keyof List]: Checked<List[At], Known>;
};

/** Does not constrain the reasons to the list's type: that costs ten times as much. */
type Checked<Option, Known extends KnownNames> = [Reason<Option, Known>] extends [never]
  ? Option extends string
    ? Option
    : ThresholdObject<string>
  : NoInfer<Option extends string ? Reason<Option, Known> : ThresholdObject<Reason<Option, Known>>>;

type Reason<Option, Known extends KnownNames> = Option extends { readonly threshold: infer Text }
  ? Reason<Text, Known>
  : Option extends string
    ? // Any text would do as a key of these: it is no literal.
      Record<never, never> extends Record<Option, 1>
      ? never
      : Option extends `${string}"${string}`
        ? never
        : Problem<Option, Known>
    : never;

type Problem<
  Text extends string,
  Known extends KnownNames,
> = Text extends `${string}${"<" | ">" | "==" | "!="}${string}`
  ? Text extends `${infer Before}{${infer Tags}}${infer After}`
    ? PathProblem<PathOf<`${Before}${After}`>, Known> | TagProblem<Tags, Known["step"]>
    : PathProblem<PathOf<Text>, Known>
  : "a comparison is missing: one of < <= > >= == !=";

type TagProblem<Tags extends string, Step extends string> = Tags extends `step=${infer Name}`
  ? Unknown<"step", Until<Name, [",", " "]>, Step>
  : never;

/** The text without what follows the path, and without spaces before it. */
type PathOf<Text extends string> = Text extends `${" " | "\n" | "\t"}${infer Rest}`
  ? PathOf<Rest>
  : Until<Text, ["<", ">", "=", "!", " ", "\n", "\t"]>;
type Until<Text extends string, Ends extends readonly string[]> = Ends extends readonly [
  infer End extends string,
  ...infer Others extends readonly string[],
]
  ? Until<Text extends `${infer Before}${End}${string}` ? Before : Text, Others>
  : Text;

type Percentile = `p${number}` | `p${number}_${number}`;
type Own = ThresholdMetrics;
type FigureOf<Name extends keyof Own> = AnyFigure<ThresholdFigures[Own[Name]][number]>;
/** A distribution has every percentile, and its figures have further names. */
type AnyFigure<Figure extends string> =
  | Figure
  | ("p99" extends Figure ? Percentile | ThresholdAlias : never);
type KindFigure<Kind extends MetricKind> = AnyFigure<
  FiguresOfKind[Kind][number] extends infer Figure
    ? Figure extends "percentile"
      ? "p99"
      : Figure & string
    : never
>;

type OwnPath =
  | "generator.cpu"
  | "arrivals.missed"
  | { [Name in keyof Own]: `${Name}.${FigureOf<Name>}` }[keyof Own];

type PathProblem<Path extends string, Known extends KnownNames> = Path extends OwnPath
  ? never
  : Path extends `${infer First}.${infer Rest}`
    ? Rest extends OwnPath
      ? Unknown<"workflow", First, Known["workflow"]>
      : Rest extends Percentile
        ? MetricProblem<First, Rest, Known["metrics"]>
        : Rest extends `${infer Second}.${infer Figure}`
          ? Longer<First, Second, Figure, Known>
          : MetricProblem<First, Rest, Known["metrics"]>
    : `"${Path}" needs a metric and a figure, such as latency.p99`;

/** Two dots and more: a workflow before a custom metric or a wrong figure, or a name with dots. */
type Longer<
  First extends string,
  Second extends string,
  Figure extends string,
  Known extends KnownNames,
> = `${First}.${Second}` extends keyof Own
  ? MetricProblem<`${First}.${Second}`, Figure, Known["metrics"]>
  : First extends Known["workflow"]
    ? PathProblem<`${Second}.${Figure}`, Known>
    : [Extract<Known["workflow"], `${string}.${string}`>] extends [never]
      ? Unknown<"workflow", First, Known["workflow"]>
      : never;

type MetricProblem<Name extends string, Figure extends string, Custom> = Name extends keyof Own
  ? Figure extends FigureOf<Name>
    ? never
    : `${Name} has no "${Figure}"; it has ${Joined<ThresholdFigures[Own[Name]]>}`
  : Name extends keyof Custom
    ? Figure extends KindFigure<Custom[Name] & MetricKind>
      ? UnlessMisspelt<Name, Custom>
      : `${string extends keyof Custom ? "" : `the ${Custom[Name] & string} `}"${Name}" has no ${Figure}`
    : Unknown<"metric", Name, (keyof Own | keyof Custom) & string>;

/** Where any name may be a custom metric, one that nearly matches a built-in is rejected. */
type UnlessMisspelt<Name extends string, Custom> = string extends keyof Custom
  ? [Nearest<Name, keyof Own>] extends [never]
    ? never
    : Unknown<"metric", Name, keyof Own>
  : never;

type Unknown<What extends string, Name extends string, Known extends string> = Name extends Known
  ? never
  : `no ${What} is called "${Name}"${Hint<Nearest<Name, Known>>}`;
type Hint<Name extends string> = [Name] extends [never] ? "" : `; did you mean "${Name}"?`;
type Nearest<Name extends string, Known extends string> = Known extends unknown
  ? OneEdit<Name, Known> extends true
    ? Known
    : never
  : never;

/** One letter inserted, removed or replaced, or two neighbours swapped. */
type OneEdit<A extends string, B extends string> = A extends `${infer X}${infer RestA}`
  ? B extends `${infer Y}${infer RestB}`
    ? X extends Y
      ? OneEdit<RestA, RestB>
      : RestA extends B | RestB
        ? true
        : A extends RestB
          ? true
          : RestA extends `${Y}${infer Tail}`
            ? RestB extends `${X}${Tail}`
              ? true
              : false
            : false
    : RestA extends ""
      ? true
      : false
  : B extends `${infer _}${infer RestB}`
    ? RestB extends ""
      ? true
      : false
    : false;

type Joined<List extends readonly string[]> = List extends readonly [
  infer First extends string,
  ...infer Rest extends readonly string[],
]
  ? Rest extends readonly []
    ? First
    : `${First}, ${Joined<Rest>}`
  : "none";
