/** The published vectors: the test suite of Signature Version 4, and the examples of S3's documentation. */

import { describe, expect, it } from "vitest";
import { signedHeaders } from "./sigv4.ts";

const SUITE = {
  ...{ region: "us-east-1", service: "service", at: new Date("2015-08-30T12:36:00Z") },
  credentials: {
    accessKey: "AKIDEXAMPLE",
    secretKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
  },
  headers: {},
  body: Buffer.alloc(0),
} as const;

const signatureOf = (headers: Readonly<Record<string, string>>): string | undefined =>
  /Signature=(\w+)/.exec(headers["authorization"] ?? "")?.[1];

describe("Signature Version 4", () => {
  it.each([
    ["get-vanilla", "GET", "/", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"],
    [
      "get-vanilla-query-order-key-case",
      "GET",
      "/?Param2=value2&Param1=value1",
      "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
    ],
    [
      "post-vanilla",
      "POST",
      "/",
      "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
    ],
  ])("signs %s of the test suite", (_, method, path, wanted) => {
    const url = new URL(path, "https://example.amazonaws.com");
    expect(signatureOf(signedHeaders({ ...SUITE, method, url }))).toBe(wanted);
  });

  it("signs PUT Object of S3's documentation", () => {
    const headers = signedHeaders({
      ...{
        method: "PUT",
        region: "us-east-1",
        service: "s3",
        at: new Date("2013-05-24T00:00:00Z"),
      },
      url: new URL("https://examplebucket.s3.amazonaws.com/test%24file.text"),
      headers: {
        date: "Fri, 24 May 2013 00:00:00 GMT",
        "x-amz-storage-class": "REDUCED_REDUNDANCY",
      },
      body: Buffer.from("Welcome to Amazon S3."),
      credentials: {
        accessKey: "AKIAIOSFODNN7EXAMPLE",
        secretKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
      },
    });
    expect(signatureOf(headers)).toBe(
      "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
    );
  });
});
