import { expect, it } from "vitest";
import { TraceSecrets } from "./trace-secrets.ts";

it("masks a secret of the request in an answer that echoes it", () => {
  const secrets = new TraceSecrets();
  const request =
    "POST /echo HTTP/1.1\r\nauthorization: Bearer YWRh.9-i4xyz\r\ncookie: id=s3cr3tvalue; a=b";
  secrets.learn(request);
  const shown = secrets.mask('{"seen":"YWRh.9-i4xyz","raw":["Bearer YWRh.9-i4xyz","s3cr3tvalue"]}');
  expect(shown).toBe('{"seen":"***","raw":["Bearer ***","***"]}');
  expect(secrets.mask(request)).toContain("authorization: ***\r\n");
});

it("masks a token of an answer in the requests that follow, under any name", () => {
  const secrets = new TraceSecrets();
  secrets.learn('{"access_token":"t0k-3n/+==","user":"ada"}');
  expect(secrets.mask("GET /x?q=t0k-3n/+== HTTP/1.1")).toBe("GET /x?q=*** HTTP/1.1");
  expect(secrets.mask('{"user":"ada"}')).toBe('{"user":"ada"}');
});

it("leaves short values alone, which occur by chance", () => {
  const secrets = new TraceSecrets();
  secrets.learn('{"password":"ada"}');
  expect(secrets.mask("GET /ada")).toBe("GET /ada");
});
