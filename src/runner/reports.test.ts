import { describe, expect, it } from "vitest";
import { startReports } from "./reports.ts";

describe("reports of a run", () => {
  it.each([
    ["samples=calls.ndjson,share=2", "report samples: share is a number above 0 and up to 1"],
    ["inflxdb=http://127.0.0.1:9", 'there is no reporter "inflxdb"; did you mean "influxdb"?'],
    ["influxdb=http://127.0.0.1:9,token=abc", "report influxdb: token is a secret"],
    [
      "metrics=0.0.0.0:9464",
      "so scrapes need a token: --report metrics=0.0.0.0:9464,token=env:SCRAPE_TOKEN",
    ],
    ["influxdb=127.0.0.1", "report influxdb: its address must be a URL"],
    ["junit=/dev/null/junit.xml", "report junit: cannot write /dev/null/junit.xml"],
    ["module=absent.ts", "report module: there is no file absent.ts"],
  ])("rejects %s as a mistake of the user", async (report, problem) => {
    const run = { name: "shop", runId: "1", title: undefined, tags: {} };
    await expect(startReports([report], run, () => undefined)).rejects.toMatchObject({
      message: expect.stringContaining(problem),
      exitCode: 2,
    });
  });
});
