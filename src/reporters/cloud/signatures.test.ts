import { createPublicKey, generateKeyPairSync, verify } from "node:crypto";
import { expect, it } from "vitest";
import { cosmosSignature } from "./cosmosdb.ts";
import { signedJwt } from "./jwt.ts";
import { claimsOf } from "./snowflake.ts";

it("matches the published example of Cosmos DB", () => {
  const signature = cosmosSignature({
    ...{ verb: "GET", type: "dbs", place: "dbs/ToDoList", date: "Thu, 27 Apr 2017 00:51:12 GMT" },
    key: "dsZQi3KtZmCv1ljt3VNWNm7sQUF1y5rJfC6kv5JiwvW0EndXdDku/dkKBp8/ufDToSxLzR4y+O/0H/t4bQtVNw==",
  });
  expect(decodeURIComponent(signature)).toBe(
    "type=master&ver=1.0&sig=c09PEVJrgp2uQRkr934kFbTqhByc7TVr3OHyqlu+c+c=",
  );
});

it("signs a token with its key and names account, user and key as Snowflake requires", () => {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2_048 });
  const nowMs = Date.parse("2026-01-31T09:05:00Z");
  const claims = claimsOf({ account: "org.ours", user: "ada", key: privateKey, nowMs });
  const [head = "", body = "", signature = ""] = signedJwt(privateKey, claims).split(".");
  const bytes = Buffer.from(signature, "base64url");
  const isOurs = verify(
    "RSA-SHA256",
    Buffer.from(`${head}.${body}`),
    createPublicKey(privateKey),
    bytes,
  );
  expect(isOurs).toBe(true);
  expect(JSON.parse(Buffer.from(head, "base64url").toString())).toEqual({
    alg: "RS256",
    typ: "JWT",
  });
  expect(JSON.parse(Buffer.from(body, "base64url").toString())).toEqual({
    ...{ sub: "ORG-OURS.ADA", iat: 1_769_850_300, exp: 1_769_853_300 },
    iss: expect.stringMatching(/^ORG-OURS\.ADA\.SHA256:[A-Za-z0-9+/]{43}=$/),
  });
});
