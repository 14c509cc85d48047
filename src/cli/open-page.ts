/** Shows a page in the reader's own browser. */

import { spawn } from "node:child_process";
import { complain } from "./print.ts";

const OPENERS: Readonly<Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>>> = {
  darwin: ["open"],
  win32: ["cmd", "/c", "start", ""],
};

/** Does not wait for it: the browser outlives the command. */
export async function openPage(file: string): Promise<void> {
  const [program, ...args] = OPENERS[process.platform] ?? ["xdg-open"];
  const child = spawn(program, [...args, file], { detached: true, stdio: "ignore" });
  await new Promise<void>((resolve) => {
    child.once("spawn", resolve);
    child.once("error", (error) => {
      complain(`hyperscale: cannot open a browser (${error.message}); the page is ${file}`);
      resolve();
    });
  });
  child.unref();
}
