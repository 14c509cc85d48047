/** The command that plays the same rounds again: what was given, what the clock chose, and the cluster's shape. */

/** Options that change what a round does; where the logs go and when it ends early do not. */
const REPLAYED = [
  ...["only", "gates", "datacenters", "managers", "workers", "duration", "away", "profile"],
] as const;

type Options = Readonly<Record<string, string | boolean | undefined>>;

export function replayLine(
  values: Options,
  defaults: Options,
  chosen: { readonly rounds: number; readonly seed: number },
): string {
  const script = values.pressure === true ? "chaos:pressure" : "chaos:cluster";
  const flags = REPLAYED.flatMap((name) => {
    const value = values[name];
    return value === undefined || value === defaults[name] ? [] : [`--${name} ${quoted(value)}`];
  });
  const all = [`--rounds ${chosen.rounds}`, `--seed ${chosen.seed}`, ...flags];
  return `npm run ${script} -- ${all.join(" ")}`;
}

/** For a shell. */
function quoted(value: string | boolean): string {
  const text = String(value);
  return /^[\w.-]+$/.test(text) ? text : `"${text}"`;
}
