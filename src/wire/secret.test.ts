import { describe, expect, it } from "vitest";
import { weakness } from "./secret.ts";

describe("a secret", () => {
  it.each([
    ["", "characters"],
    ["fifteen-chars-x", "15 characters"],
    ["aaaaaaaaaaaaaaaaaaaa", "only 1 different"],
    ["abababababababababab", "only 2 different"],
    ["abcdefabcdefabcdefab", "repeats"],
    ["0123456789abcdefghij", "run of neighbouring"],
    ["zyxwvutsrqponmlkjihg", "run of neighbouring"],
    ["hyperscale-secret-123", "common words"],
    ["PasswordPassword2026", "common words"],
    ["correct horse battery staple", "common words"],
    ["changeme-changeme-now", "common words"],
  ])("%j is refused (SEC-3, SEC-4)", (secret, reason) => {
    expect(weakness(secret)).toContain(reason);
    expect(weakness(secret)).toContain("hyperscale keygen");
  });

  it.each([
    "q7Jm2vXw9ZtKc4Rb",
    "kP3sN8dLq1VzYt6hWb0XfG5rJm2cAe7u9iTo4RlSBKw=",
    "purple otter signs nineteen ledgers",
  ])("%j is taken", (secret) => {
    expect(weakness(secret)).toBeNull();
  });
});
