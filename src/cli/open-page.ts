/** Shows a page in the user's own browser. */

import { spawn } from "node:child_process";
import type { ReportOpening } from "../ui/ports.ts";
import { complain } from "./print.ts";

const OPENERS: Readonly<Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>>> = {
  darwin: ["open"],
  win32: ["cmd", "/c", "start", ""],
};

/** Variables that tell xdg-open where to show something; one is enough. */
const SCREENS = ["DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME", "BROWSER"];

/** Returns why no browser can be opened; null when one can, as far as is known. */
export function browserProblem(
  platform: NodeJS.Platform = process.platform,
  env: Readonly<Record<string, string | undefined>> = process.env,
): string | null {
  if (OPENERS[platform] !== undefined) return null;
  const isShown = SCREENS.some((name) => (env[name] ?? "") !== "");
  return isShown ? null : "there is no screen: DISPLAY is not set";
}

/** Does not wait for it: the browser outlives the command. */
export async function openPage(file: string): Promise<void> {
  const sayPath = (problem: string): void =>
    complain(`hyperscale: cannot open a browser (${problem}); the page is ${file}`);
  const problem = browserProblem();
  if (problem !== null) {
    sayPath(problem);
    return;
  }
  const [program, ...args] = OPENERS[process.platform] ?? ["xdg-open"];
  const child = spawn(program, [...args, file], { detached: true, stdio: "ignore" });
  await new Promise<void>((resolve) => {
    child.once("spawn", resolve);
    child.once("error", (error) => {
      sayPath(error.message);
      resolve();
    });
  });
  child.unref();
}

/** Current state of `--open`, for the view whose key changes it. */
export function reportOpening(isWanted: boolean | undefined): ReportOpening {
  return { isWanted: isWanted === true, problem: browserProblem() };
}
