import { expect, it } from "vitest";
import { maskCredentials, maskedCommand } from "./mask-credentials.ts";

it.each([
  ["http://ada:secret@shop.test/x", "http://***@shop.test/x"],
  [
    "see https://token@h:8443?a=b@c and wss://a:p%40ss@h",
    "see https://***@h:8443?a=b@c and wss://***@h",
  ],
  ['"http://a:b@c@h/" is not', '"http://***@h/" is not'],
  ["mail ada@shop.test", "mail ada@shop.test"],
  ["http://shop.test/@ada", "http://shop.test/@ada"],
  ["", ""],
])("masks the credentials of addresses only: %s", (text, masked) => {
  expect(maskCredentials(text)).toBe(masked);
});

it("masks secrets in the words of a command", () => {
  const words = [
    "run",
    "http://a:b@h/",
    "--header",
    "Authorization: Bearer x",
    "--header=X-Api-Key: k",
  ];
  expect(maskedCommand([...words, "--header", "accept: text/html", "Cookie: a=b"])).toBe(
    "run http://***@h/ --header Authorization: *** --header=X-Api-Key: *** --header accept: text/html Cookie: ***",
  );
});
