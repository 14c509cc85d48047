/** Invalid requests, and how addresses and headers are normalised. */

import { describe, expect, it } from "vitest";
import { UrlPart } from "./parts.ts";
import { compose, type RequestOptions } from "./request.ts";

const given = (options: object): RequestOptions => options as RequestOptions;

describe("an option of a request", () => {
  it.each([
    [{ jsn: 1 }, 'a request has no option "jsn"; did you mean "json"?'],
    [{ header: {} }, 'a request has no option "header"; did you mean "headers"?'],
    [{ wibble: 1 }, 'a request has no option "wibble"'],
    [{ toString: 1 }, 'a request has no option "toString"'],
    [{ body: "x", json: 1 }, "a request has one content: leave out body or json"],
    [{ form: {}, json: 1 }, "a request has one content: leave out form or json"],
    [{ bodyBytesMax: -1 }, "bodyBytesMax: a whole number of bytes"],
    [{ headers: { a: null } }, 'header "a" is null: a header is text or a number'],
    [{ headers: { a: { b: 1 } } }, 'header "a" is an Object'],
    [{ headers: { a: "x\r\ny: z" } }, 'the value of header "a" contains a character'],
  ])("that is unknown or invalid is rejected: %o", (options, message) => {
    expect(() => compose("POST", "http://shop.test/", given(options))).toThrow(message);
  });

  it("that is undefined counts as absent", () => {
    const options = given({ json: undefined, body: "x", headers: { a: undefined, b: 0 } });
    const { body, headers } = compose("POST", "http://shop.test/", options);
    expect(String(body)).toBe("x");
    expect(headers.map(([name, value]) => `${name}=${value}`)).toContain("b=0");
    expect(headers.map(([name]) => name)).not.toContain("a");
  });
});

describe("credentials in an address", () => {
  const authorizationOf = (url: string, options: RequestOptions = {}): string | undefined =>
    compose("GET", url, options).headers.find(([name]) => name === "authorization")?.[1];
  const basic = (text: string): string => `Basic ${Buffer.from(text).toString("base64")}`;

  it.each([
    ["http://ada:secret@shop.test/", "ada:secret"],
    ["https://a%40b:p%3Ass%20w%C3%B6rd@shop.test/", "a@b:p:ss wörd"],
    ["http://token@shop.test/", "token:"],
    ["http://:secret@shop.test/", ":secret"],
    ["http://ada:100%@shop.test/", "ada:100%"],
  ])("are sent as Basic: %s", (url, credentials) => {
    expect(authorizationOf(url)).toBe(basic(credentials));
  });

  it("yield to those of the request, and are absent where none are given", () => {
    const headers = { Authorization: "Bearer x" };
    expect(authorizationOf("http://ada:secret@shop.test/", { headers })).toBeUndefined();
    expect(authorizationOf("http://shop.test/")).toBeUndefined();
  });

  it("are never displayed", () => {
    const part = new UrlPart("http://ada:secret@shop.test:81/x?y");
    expect([part.href, part.authority, part.path]).toEqual([
      "http://shop.test:81/x?y",
      "shop.test:81",
      "/x?y",
    ]);
    for (const url of ["ada:secret@shop.test/", "ftp://ada:secret@h/", "http://ada:secret@[x/"]) {
      expect(() => compose("GET", url, {})).toThrow(expect.not.stringContaining("secret"));
    }
  });
});
