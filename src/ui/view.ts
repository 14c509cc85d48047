/**
 * Selects the view of a run. `auto` is the live picture when a person is likely to look (a terminal that can move its
 * cursor, and no CI variable), plain lines otherwise. Requesting `full` without a terminal gives plain lines too
 * (TUI-6): a picture in a log file helps nobody.
 */

import type { RunView } from "../core/load/results/live.ts";
import { CiView } from "./ci-view.ts";
import { FullView } from "./full-view.ts";
import { JsonView } from "./json-view.ts";
import type { ViewOptions } from "./ports.ts";

type UiMode = "full" | "ci" | "json" | "none";

export function createView(options: ViewOptions): RunView {
  switch (chooseMode(options)) {
    case "full":
      return new FullView(options);
    case "ci":
      return new CiView(options);
    case "json":
      return new JsonView(options);
    case "none":
      return silent;
  }
}

export function chooseMode({ mode, stdout, env }: Omit<ViewOptions, "stdin">): UiMode {
  if (mode === "none" || mode === "ci" || mode === "json") return mode;
  if (stdout.isTTY !== true || env["TERM"] === "dumb") return "ci";
  return mode === "auto" && inCi(env["CI"]) ? "ci" : "full";
}

/** Set and not switched off: CI systems write "true" or "1", some their name. */
export function inCi(value: string | undefined): boolean {
  return value !== undefined && value !== "" && value !== "false" && value !== "0";
}

/** Prints nothing; the exit code and the files remain. */
const silent: RunView = {
  start: () => {},
  update: () => {},
  message: () => {},
  finish: () => {},
};
