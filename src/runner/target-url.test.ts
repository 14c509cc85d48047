import { describe, expect, it } from "vitest";
import { parseTargetUrl } from "./target-url.ts";

describe("a target URL", () => {
  it("is accepted as it is when it has a scheme", () => {
    const parsed = parseTargetUrl(" https://[::1]:8443/a?b=c ");
    expect(parsed.ok && parsed.url.href).toBe("https://[::1]:8443/a?b=c");
  });

  it.each([
    ["example.com", "http://example.com"],
    ["localhost:8080/x", "http://localhost:8080/x"],
    ["//example.com/", "http://example.com/"],
    ["http:example.com", "http://example.com"],
    ["https:/example.com", "https://example.com"],
    ["example.com:443/a", "https://example.com:443/a"],
  ])("without a scheme, %s, is rejected with the one that was meant", (text, meant) => {
    const parsed = parseTargetUrl(text);
    expect(parsed.ok).toBe(false);
    expect(!parsed.ok && parsed.problem).toContain(`did you mean ${meant} ?`);
  });

  it.each([
    ["", "is empty"],
    ["http://", "is not a URL"],
    ["http://a b/", "is not a URL"],
    ["http://a:99999/", "is not a URL"],
    ["http://a:0/", "port 0"],
    ["ftp://example.com/", "only http:// and https://"],
  ])("%j is rejected: %s", (text, problem) => {
    const parsed = parseTargetUrl(text);
    expect(!parsed.ok && parsed.problem).toContain(problem);
  });
});
