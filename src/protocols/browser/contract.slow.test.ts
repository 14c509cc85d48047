import { describe } from "vitest";
import { chromiumPath, NO_BROWSER, needs } from "../../../test/needs.ts";
import { describeContract } from "../testing/contract.ts";
import { BrowserTarget } from "./target.ts";
import { listenPages, startSite } from "./testing/site.ts";

describe("browser", needs(chromiumPath !== undefined, NO_BROWSER), () => {
  describeContract({
    name: "browser",
    calls: (port) => {
      const target = new BrowserTarget(`http://127.0.0.1:${port}`, { elementTimeout: "100ms" });
      return {
        success: target.goto("/"),
        refused: { call: target.click("#nowhere"), code: "ELEMENT_ABSENT" },
      };
    },
    real: {
      start: chromiumPath === undefined ? null : () => startSite(),
      absent: NO_BROWSER,
      users: 5,
      leakCalls: 60,
    },
    hostile: {
      listen: listenPages,
      mute: null,
      resets: true,
      half: Buffer.from(
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 100\r\n\r\n<p>half",
      ),
      rubbish: [
        Buffer.from("hello\r\n\r\n"),
        Buffer.from("HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n"),
        Buffer.from("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"),
      ],
      // The browser limits the size of pages; nothing of it is kept here.
      oversize: null,
      timeoutMs: 10_000,
    },
  });
});
