import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { findElement } from "./html.ts";

const page = `<!DOCTYPE html><html><head>
<!-- <input name="csrf" value="in a comment"> -->
<title>A <input name=csrf value=title></title>
<meta name="csrf-token" content='m&amp;ta "x"'>
<script>document.write('<input name="csrf" value="script">'); if (a<b && c>d) {}</script>
<style>a[href]{content:"<input name=csrf>"}</style>
</head><body class=page>
<FORM action="/login?a=1&amp;b=2" METHOD=post>
<input type=hidden name=csrf value=t0k&#61;n&#x2F;&quot;&unknown;><input type="text" name="user"
  VALUE = 'ada' value="second" disabled/>
<input name="empty" value=""><input name='br>acket' value='>'>
<textarea name="note"><input name="inside" value="x"></textarea>
<button id="go" class="big primary" formaction=/go data-n="7">Log &lt;in&gt;
  now</button>
</form><a href="/next?page=2" class="next">next</a><a href="#top">top</a>
<p>1 < 2 and <3</p><input name="last" value="z">`;

describe("find", () => {
  it.each([
    ["input[name=csrf]", 't0k=n/"&unknown;'],
    ['input[name="user"]', "ada"],
    ["input[name='br>acket']", ">"],
    ["input[name=empty]", ""],
    ["input[name=last]", "z"],
    ["[name=last]", "z"],
    ["meta[name=csrf-token]", 'm&ta "x"'],
    ["a[href]", "/next?page=2"],
    ['a[href^="#"]', "#top"],
    ["a.next", "/next?page=2"],
    ['a[href*="page="]', "/next?page=2"],
    ["input[disabled]", "ada"],
    ["INPUT[NAME=user][type=text]", "ada"],
  ])("%s finds the element's value", (selector, value) => {
    expect(findElement(page, selector)?.value).toBe(value);
  });

  it("returns tag, attributes and text", () => {
    const button = findElement(page, "#go.primary");
    expect([button?.tag, button?.text, button?.value]).toEqual([
      "button",
      "Log <in> now",
      undefined,
    ]);
    expect(button?.attribute("Data-N")).toBe("7");
    expect(findElement(page, "form")?.attribute("action")).toBe("/login?a=1&b=2");
  });

  it.each(["input[name=inside]", "input[name=nobody]", "video", ".bi", "#g"])(
    "%s finds nothing",
    (selector) => expect(findElement(page, selector)).toBeUndefined(),
  );

  it.each(["", "form input", "a, b", "a:first-child", "a > b", "[name", "input[name=a b]"])(
    "rejects the selector %j",
    (selector) => expect(() => findElement(page, selector)).toThrow("write one element"),
  );

  it("finds any name and value in every style of quoting", () => {
    const name = fc.stringMatching(/^[a-z][a-z0-9_-]{0,10}$/);
    const text = fc.string({ unit: "grapheme", maxLength: 30 });
    const written = (text: string): string =>
      text.replace(/[&<>"'=`\s]/g, (character) => `&#${character.codePointAt(0)};`);
    fc.assert(
      fc.property(name, text, fc.constantFrom('"', "'", ""), (field, content, quote) => {
        const value = quote === "" && content === "" ? '""' : `${quote}${written(content)}${quote}`;
        const html = `<p>x<input type=hidden name=${field} value=${value}><input name=${field} value=no>`;
        expect(findElement(html, `input[name=${field}]`)?.value).toBe(content);
      }),
      { numRuns: 300 },
    );
  });

  it("terminates on any text, in time linear in its length", () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[<>a"'=\s/!-]{0,60}$/), (html) => {
        findElement(html, "a[b=c]");
      }),
    );
    const steps = ["<".repeat(200_000), "<a ".repeat(70_000), `<a ${"b=".repeat(100_000)}`];
    for (const html of [
      ...steps,
      `<a ${"'".repeat(200_000)}`,
      `<a${" ".repeat(200_000)}`,
      `<a b${" ".repeat(200_000)}=`,
      "İ<script></script><p>",
      "<!--".repeat(50_000),
      "<script>".repeat(20_000),
    ]) {
      expect(findElement(html, "a[b=c][d=e]")).toBeUndefined();
    }
  });
});
