/** Encodes values as bodies and reads them back with an independent parser: Node's own fetch. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type BodyValue, encodeBody, encodeFormValues, type FormValues } from "./body.ts";
import { isSource, readWhole } from "./body-source.ts";
import type { EncodedBody } from "./multipart.ts";
import { compose } from "./request.ts";

async function bytesOf({ content }: EncodedBody): Promise<Buffer> {
  return isSource(content) ? readWhole(content) : content;
}

/** Parses the form with an independent reader. */
async function readForm(encoded: EncodedBody): Promise<FormData> {
  const body = new Uint8Array(await bytesOf(encoded));
  return new Response(body, { headers: { "content-type": encoded.contentType } }).formData();
}

const tricky = [
  "plain",
  'with "quotes"',
  "ünï¢ode 日本 🙂",
  "semi;colon=a",
  "--hyperscale-",
  "a\\b",
  "",
];

describe("a body", () => {
  const bytes = Buffer.from("bytes");
  const cases: readonly (readonly [string, BodyValue, string, string])[] = [
    ["text", "grüße", "text/plain; charset=utf-8", "grüße"],
    ["plain data", { a: [1, null], b: undefined }, "application/json", '{"a":[1,null]}'],
    ["a date inside", { at: new Date(0) }, "application/json", '{"at":"1970-01-01T00:00:00.000Z"}'],
    ["an object without prototype", Object.create(null), "application/json", "{}"],
    ["bytes", new Uint8Array(bytes), "application/octet-stream", "bytes"],
    [
      "a part of a buffer",
      new DataView(Uint8Array.from(bytes).buffer, 1, 2),
      "application/octet-stream",
      "yt",
    ],
    ["numbers of two bytes", Uint16Array.of(0x6261, 0x6463), "application/octet-stream", "abcd"],
    ["an ArrayBuffer", Uint8Array.from(bytes).buffer, "application/octet-stream", "bytes"],
    ["a Blob", new Blob(["blo", "b"], { type: "image/png" }), "image/png", "blob"],
    ["a File", new File(["file"], "a.txt", { type: "text/plain" }), "text/plain", "file"],
    [
      "URLSearchParams",
      new URLSearchParams({ a: "b c" }),
      "application/x-www-form-urlencoded",
      "a=b+c",
    ],
    ["a ReadableStream", new Blob(["stream"]).stream(), "application/octet-stream", "stream"],
  ];
  it.each(cases)("of %s is sent in its own format", async (_what, value, type, text) => {
    const encoded = encodeBody(value);
    expect([encoded.contentType, (await bytesOf(encoded)).toString()]).toEqual([type, text]);
  });

  it("of an async iterable is read once", async () => {
    const encoded = encodeBody(
      (async function* () {
        yield "a";
        yield Buffer.from("b");
      })(),
    );
    expect((await bytesOf(encoded)).toString()).toBe("ab");
    await expect(bytesOf(encoded)).rejects.toThrow("already read");
  });

  it.each([
    [{ body: { list: [1, new Map()] } }, "body.list[1] is a Map: it is not plain data"],
    [{ json: { a: { b: Number.NaN } } }, "json.a.b is NaN: JSON has no such number"],
    [{ json: { a: () => 1 } }, "json.a is a function: JSON cannot hold it"],
    [{ json: [undefined] }, "json[0] is undefined: JSON cannot hold it"],
    [{ json: { n: 1n } }, "json.n is a bigint: JSON cannot hold it"],
    [{ json: { bytes: Buffer.from("x") } }, "json.bytes is a Buffer: it is not plain data"],
    [{ json: { form: new FormData() } }, "json.form is a FormData: it is not plain data"],
    [{ body: new Set([1]) }, "body is a Set: it is not plain data"],
    [{ body: Promise.resolve(1) }, "body is a Promise: it is not plain data"],
    [{ body: null }, "body is null, which cannot be sent"],
    [{ body: 7 }, "body is a number, which cannot be sent"],
    [{ form: { a: { b: 1 } } }, "form.a is an Object: a field is text"],
    [{ form: new FormData() }, "form is a FormData"],
    [
      { form: { a: new Blob(["x"]) }, headers: { "Content-Type": "multipart/form-data" } },
      'leave the header "content-type" out',
    ],
  ])("that cannot be sent is rejected by name: %o", (options, message) => {
    expect(() => compose("POST", "http://a.test/", options as object)).toThrow(message);
  });

  it("that contains itself is rejected", () => {
    const loop: Record<string, unknown> = {};
    loop["self"] = loop;
    expect(() => compose("POST", "http://a.test/", { json: loop })).toThrow("contains itself");
  });
});

describe("a form", () => {
  it("with values only is urlencoded and omits undefined values", () => {
    const encoded = encodeFormValues({ a: "x y", n: 1, yes: true, no: undefined, l: ["1", "2"] });
    expect(encoded.contentType).toBe("application/x-www-form-urlencoded");
    expect(encoded.content.toString()).toBe("a=x+y&n=1&yes=true&l=1&l=2");
  });

  it("with files is multipart, with their names, types and bytes", async () => {
    const every = Uint8Array.from({ length: 256 }, (_, at) => at);
    for (const name of tricky.filter((text) => text !== "")) {
      const encoded = encodeFormValues({
        [name]: `value of ${name}`,
        upload: new File([every], name, { type: "image/png" }),
        blob: new Blob([]),
      });
      const form = await readForm(encoded);
      expect(form.get(name)).toBe(`value of ${name}`);
      const file = form.get("upload") as File;
      expect([file.name, file.type]).toEqual([name, "image/png"]);
      expect(new Uint8Array(await file.arrayBuffer())).toEqual(every);
      expect((form.get("blob") as File).name).toBe("blob");
    }
  });

  it("escapes line breaks in names, so that values cannot inject a header or a part", async () => {
    const evil = 'a"\r\ncontent-type: text/html\r\n\r\n<b>';
    const form = new FormData();
    form.append(evil, "1");
    form.append("file", new File(["x"], evil));
    const encoded = encodeBody(form);
    const text = (await bytesOf(encoded)).toString();
    expect(text).toContain('name="a%22%0D%0Acontent-type: text/html%0D%0A%0D%0A<b>"');
    const read = await readForm(encoded);
    expect([...read.keys()].length).toBe(2);
    expect((read.get("file") as File).type).toBe("application/octet-stream");
  });

  it("survives Node's parser unchanged and has its declared length", async () => {
    const text = fc
      .string({ unit: "grapheme", maxLength: 20 })
      .map((s) => s.replace(/[\r\n]/g, "_"));
    const name = text.filter((s) => s !== "");
    const file = fc.tuple(fc.uint8Array({ maxLength: 300 }), name);
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(name, fc.oneof(text, file)), { minLength: 1 }),
        async (all) => {
          const form = new FormData();
          for (const [key, value] of all) {
            if (typeof value === "string") form.append(key, value);
            else form.append(key, new File([Uint8Array.from(value[0])], value[1]));
          }
          const encoded = encodeBody(form);
          expect((await bytesOf(encoded)).length).toBe(encoded.content.length);
          const back = [...(await readForm(encoded))];
          expect(back.map(([key]) => key)).toEqual(all.map(([key]) => key));
          for (const [at, [, value]] of all.entries()) {
            const got = back[at]?.[1];
            if (typeof value === "string") expect(got).toBe(value);
            else {
              expect((got as File).name).toBe(value[1]);
              expect(new Uint8Array(await (got as File).arrayBuffer())).toEqual(
                Uint8Array.from(value[0]),
              );
            }
          }
        },
      ),
      { numRuns: 150 },
    );
  });

  it("from FormData equals the output of Node's own fetch, except for the boundary", async () => {
    const form = new FormData();
    for (const name of tricky) form.append(`f ${name}`, `a\rb\nc\r\nd ${name}`);
    form.append("file", new File(["x"], 'q"\n.txt', { type: "text/plain" }));
    const ours = await readForm(encodeBody(form));
    const theirs = await new Response(form).formData();
    const flat = async (read: FormData) =>
      Promise.all(
        [...read].map(async ([k, v]) => [k, typeof v === "string" ? v : [v.name, await v.text()]]),
      );
    expect(await flat(ours)).toEqual(await flat(theirs));
  });

  it("keeps values of all lengths", async () => {
    const values: FormValues = Object.fromEntries(
      [0, 1, 63, 64, 65, 70_000].map((length) => [`f${length}`, new Blob(["x".repeat(length)])]),
    );
    const form = await readForm(encodeFormValues(values));
    for (const [name, value] of form) expect(`f${(value as File).size}`).toBe(name);
  });
});
