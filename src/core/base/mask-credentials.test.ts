import { expect, it } from "vitest";
import { maskCredentials, maskedCommand, maskSecrets } from "./mask-credentials.ts";

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

it("masks secrets in the arguments of a command", () => {
  const words = [
    "run",
    "http://a:b@h/",
    "--header",
    "Authorization: Bearer x",
    "--header=X-Api-Key: k",
  ];
  expect(maskedCommand(["run", "f.ts", "-e", "API_TOKEN=abc", "--env=SHOP=http://h/"])).toBe(
    "run f.ts -e API_TOKEN=*** --env=SHOP=***",
  );
  expect(maskedCommand([...words, "--header", "accept: text/html", "Cookie: a=b"])).toBe(
    "run http://***@h/ --header Authorization: *** --header=X-Api-Key: *** --header accept: text/html Cookie: ***",
  );
});

it.each([
  ["GET http://a:b@h/x?api_key=abc&page=2", "GET http://***@h/x?api_key=***&page=2"],
  ['{"access_token":"ey.J0","id":7}', '{"access_token":"***","id":7}'],
  ['{"password" : "a\\"b", "n": 1}', '{"password" : "***", "n": 1}'],
  ['{"sessionId":12345}', '{"sessionId":"***"}'],
  ['{"token":"cut off he', '{"token":"***"'],
  ["sent Authorization: Bearer abc.def-1 again", "sent Authorization: Bearer *** again"],
  ["nothing to hide", "nothing to hide"],
])("masks values whose name says that they are secret: %s", (text, masked) => {
  expect(maskSecrets(text)).toBe(masked);
});
