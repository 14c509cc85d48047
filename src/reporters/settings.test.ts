import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parseReport, Secrets, settingValues, targetOf } from "./settings.ts";

const SETTINGS = {
  token: { kind: "secret", about: "the token" },
  every: { kind: "duration", about: "how often", default: "5s" },
  mode: { kind: "choice", about: "which", choices: ["push", "pull"], default: "push" },
  note: { kind: "text", about: "anything", optional: true },
} as const;

const values = (text: string, env: Record<string, string> = { TOKEN: "s3cret" }) =>
  settingValues(SETTINGS, parseReport(text), new Secrets(env));

describe("--report", () => {
  it("is a name, a target and settings", () => {
    const text = "influxdb=http://db:8086/?q=a,b,database=load,password=env:P";
    expect(parseReport(text)).toEqual({
      name: "influxdb",
      target: "http://db:8086/?q=a,b",
      settings: { database: "load", password: "env:P" },
    });
    expect(parseReport("github")).toEqual({ name: "github", target: "", settings: {} });
    expect(() => parseReport("http://db:8086")).toThrow("is not NAME=TARGET");
  });

  it("has settings with types and defaults", () => {
    expect(values("x=y,token=env:TOKEN,every=1m")).toEqual({
      token: "s3cret",
      every: 60_000,
      mode: "push",
      note: undefined,
    });
  });

  it.each([
    ["x=y", "report x: token is missing: the token"],
    ["x=y,token=env:TOKEN,mde=push", 'report x: there is no setting "mde"; did you mean "mode"?'],
    ["x=y,token=env:TOKEN,mode=both", "report x: mode is one of push, pull"],
    ["x=y,token=env:TOKEN,every=often", "report x: every:"],
    ["x=y,token=env:NONE", "report x: token: the environment has no variable NONE"],
  ])("rejects %s", (text, problem) => {
    expect(() => values(text)).toThrow(problem);
  });
});

describe("a secret", () => {
  it("is rejected in plain text, and the error does not repeat it", () => {
    expect(() => values("x=y,token=s3cret")).toThrow(/^(?!.*s3cret).*write env:NAME or file:PATH/);
  });

  it("is rejected in an address, except by reference", () => {
    const secrets = new Secrets({ PGURL: "postgres://ada:s3cret@db/load" });
    const target = (text: string): string => targetOf(parseReport(text), secrets);
    expect(() => target("postgres=postgres://ada:s3cret@db/load")).toThrow(/^(?!.*s3cret)/);
    expect(target("postgres=env:PGURL")).toBe("postgres://ada:s3cret@db/load");
  });

  it("is removed from every text", () => {
    const secrets = new Secrets({ TOKEN: "s3cret" });
    secrets.read("env:TOKEN", "report x");
    expect(secrets.scrub("401 for s3cret at http://ada:pw@db/")).toBe(
      "401 for *** at http://***@db/",
    );
  });

  it("is removed in part, too: the password of an address, the token of a header", () => {
    const secrets = new Secrets({
      URL: "postgres://ada:pa55word%21@db/load",
      H: "x: Bearer t0ken-12",
    });
    for (const name of ["env:URL", "env:H"]) secrets.read(name, "report x");
    expect(secrets.scrub("no pa55word! for ada at db, t0ken-12 Bearer")).toBe(
      "no *** for ada at db, *** Bearer",
    );
  });

  it.each([
    [
      "https://hooks.example/services/T0/t0ken-0123",
      "Cannot POST /services/T0/t0ken-0123",
      "Cannot POST ***",
    ],
    ["https://hooks.example/services/T0/t0ken-0123", "no hook t0ken-0123", "no hook ***"],
    ["http://db/write?key=t0ken-0123%21&u=ada", "who is t0ken-0123!, ada?", "who is ***, ada?"],
    [
      "postgres://ada:50%25@db/inventory",
      'no database "inventory", 50%',
      'no database "inventory", ***',
    ],
    ["redis://ada:100%@db", "no 100%", "no ***"],
    ["x-key:t0ken-0123", "bad key t0ken-0123", "bad key ***"],
  ])("is removed in part: %s", (value, said, shown) => {
    const secrets = new Secrets({ URL: value });
    secrets.read("env:URL", "report x");
    expect(secrets.scrub(said)).toBe(shown);
  });

  it("can come from a file", () => {
    const folder = mkdtempSync(join(tmpdir(), "hyperscale-secret-"));
    try {
      writeFileSync(join(folder, "token"), "from-file\n");
      expect(values(`x=y,token=file:${join(folder, "token")}`).token).toBe("from-file");
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
