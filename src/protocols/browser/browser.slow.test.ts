import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { chromiumPath, NO_BROWSER, needs } from "../../../test/needs.ts";
import { makeCertificate } from "../../demo/certificate.ts";
import { runExample } from "../testing/example.ts";
import { answersTo, perform, TestSession } from "../testing/session.ts";
import type { WaitUntil } from "./command.ts";
import { navigationFailure } from "./failure.ts";
import { findChromium } from "./process.ts";
import { BrowserTarget } from "./target.ts";
import { type Site, startSite } from "./testing/site.ts";

describe("a browser", needs(chromiumPath !== undefined, NO_BROWSER), () => {
  let site: Site;
  let shop: BrowserTarget;
  beforeAll(async () => {
    site = await startSite();
    shop = new BrowserTarget(site.url, { elementTimeout: "1s", headers: { "x-shop": "well" } });
  });
  afterAll(() => site.stop());

  it("opens pages and reports their timings", async () => {
    const [home, picture, moved] = await answersTo(
      shop.goto("/"),
      shop.goto("/picture"),
      shop.goto("/moved"),
    );
    expect(home).toMatchObject({ ok: true, protocol: "browser", status: 200, sent: 1 });
    expect(home.value).toMatchObject({ address: `${site.url}/`, status: 200, requests: 1 });
    const { timings, vitals } = home.value;
    expect(vitals).toMatchObject({ cls: 0, inpMs: null, fidMs: null });
    expect(vitals?.ttfbMs).toBeGreaterThan(0);
    // A busy machine may paint after the page has loaded; both values are missing then.
    expect(vitals?.lcpMs ?? 0).toBeGreaterThanOrEqual(vitals?.fcpMs ?? 0);
    expect(timings?.loadMs).toBeGreaterThanOrEqual(timings?.domInteractiveMs ?? Number.NaN);
    expect(timings?.waitingMs).toBeGreaterThan(0);
    expect(home.firstByteAt).toBeGreaterThan(home.startedAt + home.connectMs);
    expect(home.endedAt).toBeGreaterThan(home.firstByteAt);
    expect(picture.value.requests).toBe(3);
    expect(picture.bytesIn).toBeGreaterThan(0);
    expect(moved.value.address).toBe(`${site.url}/`);
    expect(moved.connectMs).toBe(-1);
  });

  it("fills, selects, clicks and reads like a person", async () => {
    const [, filled, chosen, found, said, pressed] = await answersTo(
      shop.goto("/"),
      shop.fill("input[name=q]", "red shoes"),
      shop.select("select", "L"),
      shop.click("text=Search", { navigates: true }),
      shop.text("h1"),
      shop.use("back", async (page) => {
        await page.goBack();
        return page.title();
      }),
    );
    expect(filled.value).toBeNull();
    expect(chosen.value).toEqual(["L"]);
    expect(found.value.address).toBe(`${site.url}/found?q=red+shoes&size=L`);
    expect(site.last("/found")).toBe("/found?q=red+shoes&size=L");
    expect(said.value).toBe("Found well");
    expect(pressed.value).toMatch(/^visits=/);
  });

  it("measures interactions and layout shifts", async () => {
    /** A busy machine paints late and reports an interaction only then. */
    const until = (figure: string) =>
      shop.use("told", (page) =>
        page.waitForFunction(`globalThis.__hyperscale().vitals.${figure}`),
      );
    const [, , , after, , waited, , shifted] = await answersTo(
      shop.goto("/"),
      shop.click("#busy"),
      until("inpMs"),
      shop.vitals(),
      shop.goto("/shifting"),
      shop.waitFor("body > div"),
      until("cls"),
      shop.vitals(),
    );
    expect(after.value?.inpMs).toBeGreaterThanOrEqual(50);
    expect(after.value?.fidMs).toBeGreaterThanOrEqual(0);
    expect(waited.error).toBeNull();
    expect(shifted.value?.cls).toBeGreaterThan(0);
  });

  it("reports refused actions by name and continues on the same page", async () => {
    const [missing, wanted, absent, many, thrown, home] = await answersTo(
      shop.goto("/nowhere"),
      shop.goto("/nowhere", { expect: 404 }),
      shop.click("#nowhere"),
      shop.text("h1, body"),
      shop.use("mistake", async () => {
        throw new Error("a mistake of mine");
      }),
      shop.goto("/"),
    );
    expect(missing).toMatchObject({ errorKind: "status", errorCode: "404", status: 404 });
    expect(wanted.value.status).toBe(404);
    expect(absent).toMatchObject({ errorKind: "application", errorCode: "ELEMENT_ABSENT" });
    expect(many).toMatchObject({ errorKind: "application", errorCode: "ELEMENT_AMBIGUOUS" });
    expect(thrown).toMatchObject({ errorKind: "exception", error: "a mistake of mine" });
    expect(home).toMatchObject({ ok: true, connectMs: -1 });
  });

  it("isolates cookies per user, and per iteration on request", async () => {
    const title = shop.use("title", (page) => page.title());
    const [ada, bob] = [new TestSession(), new TestSession({}, 1)];
    await perform(shop.goto("/"), ada);
    ada.reset();
    await perform(shop.goto("/"), ada);
    expect((await perform(title, ada)).value).toBe("visits=2");
    await perform(shop.goto("/"), bob);
    expect((await perform(title, bob)).value).toBe("visits=1");
    const fresh = new BrowserTarget(site.url, { context: "iteration" });
    for (let iteration = 0; iteration < 2; iteration++) {
      await perform(fresh.goto("/"), ada);
      const name = await perform(
        fresh.use("title", (page) => page.title()),
        ada,
      );
      expect(name.value).toBe("visits=1");
      ada.reset();
    }
    for (const session of [ada, bob]) session.close();
  });

  it("verifies certificates unless insecure is set", async () => {
    const secure = await startSite(makeCertificate({ hosts: ["127.0.0.1"] }));
    onTestFinished(() => secure.stop());
    const [doubting, trusting] = await answersTo(
      new BrowserTarget(secure.url).goto("/"),
      new BrowserTarget(secure.url, { insecure: true }).goto("/"),
    );
    expect(doubting).toMatchObject({ errorKind: "tls", errorCode: "ERR_CERT_AUTHORITY_INVALID" });
    expect(trusting.error).toBeNull();
  });

  it("starts a new browser after one was killed", async () => {
    const session = new TestSession();
    const crashed = await perform(
      shop.use("end", (page) => page.context().browser()?.close() ?? Promise.resolve()),
      session,
    );
    expect(crashed).toMatchObject({ errorKind: "reset" });
    // The browser takes a while to exit.
    await expect.poll(async () => (await perform(shop.goto("/"), session)).error).toBeNull();
    session.close();
  });

  it("matches the server's own count in a whole run", async () => {
    const [homes, searches] = [site.count("/"), site.count("/found")];
    const steps = await runExample("browser.ts", { BROWSER_URL: site.url }, "5s");
    expect(site.count("/") - homes).toBe(steps.get("home")?.ok);
    // A busy machine may not get that far.
    expect(site.count("/found") - searches).toBe(steps.get("search")?.ok ?? 0);
  });
});

describe("validation", () => {
  const shop = new BrowserTarget("http://127.0.0.1");
  const idle = "idle" as WaitUntil;
  it.each([
    ["an option of sockets", () => make({ hosts: {} }), /has no option "hosts"/],
    ["no selector", () => shop.click(""), /is not a selector/],
    ["no page", () => shop.goto("http://"), /is not a path/],
    ["an end that is none", () => shop.goto("/", { waitUntil: idle }), /waitUntil is one of/],
    ["another context", () => make({ context: "tab" }), /context is "user" or "iteration"/],
  ])("reports at once: %s", (_what, act, text) => {
    expect(act).toThrow(text);
  });
});

function make(options: object): BrowserTarget {
  return new BrowserTarget("http://127.0.0.1", options);
}

describe("no browser", () => {
  const nothing = { exists: () => false, environment: {} };

  it("is reported with the command that installs one", () => {
    expect(() => findChromium("", "/own/chrome", nothing)).toThrow(
      "npx playwright-core install chromium",
    );
    expect(() => findChromium("/not/there", "", nothing)).toThrow("/not/there");
  });

  it("fails the preparation, not the calls", async () => {
    const lost = new BrowserTarget("http://127.0.0.1", { executablePath: "/not/there" });
    await expect(lost.goto("/").prepare()).rejects.toThrow("/not/there");
  });
});

it.each([
  ["ERR_NAME_NOT_RESOLVED", "dns"],
  ["ERR_CONNECTION_REFUSED", "refused"],
  ["ERR_CONNECTION_TIMED_OUT", "timeout"],
  ["ERR_CONNECTION_RESET", "reset"],
  ["ERR_CERT_DATE_INVALID", "tls"],
  ["ERR_SSL_PROTOCOL_ERROR", "tls"],
  ["ERR_TOO_MANY_REDIRECTS", "protocol"],
  ["ERR_INSUFFICIENT_RESOURCES", "resources"],
])("a navigation that fails with %s is %s", (name, kind) => {
  expect(navigationFailure(name)).toMatchObject({ kind, code: name });
});
