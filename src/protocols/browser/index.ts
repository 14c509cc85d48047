/** Entry point of the browser protocol: `import { browser } from "hyperscalejs/browser"`. */

import { registerProtocol } from "../protocol.ts";
import { TargetClient } from "../target/client.ts";
import type { BrowserCommand } from "./command.ts";
import { type BrowserOptions, BrowserTarget } from "./target.ts";

export type { LoadedPage, PageTimings, WaitUntil, WebVitals } from "./command.ts";
export type {
  ActionOptions,
  BrowserCall,
  BrowserOptions,
  BrowserResponse,
  BrowserTarget,
  GotoOptions,
} from "./target.ts";

export type BrowserClient = TargetClient<BrowserCommand>;

declare module "../protocol.ts" {
  interface Clients {
    readonly browser: BrowserClient;
  }
}

export const browser = {
  /** A site: `browser.target("https://shop.test")`. */
  target: (address: string, options?: BrowserOptions): BrowserTarget =>
    new BrowserTarget(address, options),
};

registerProtocol({
  name: "browser",
  client: (session) => new TargetClient<BrowserCommand>(session),
  ping: {
    // http: and https: addresses themselves belong to HTTP.
    schemes: ["browser+http", "browser+https"],
    call: (address, options) =>
      new BrowserTarget(address.replace(/^browser\+/i, ""), options).ping(),
  },
});
