import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { connect, createServer, type TLSSocket } from "node:tls";
import { expect, it } from "vitest";
import { makeCertificate } from "./certificate.ts";

it("makes a certificate that OpenSSL reads, with its names and its validity", () => {
  const validTo = new Date("2040-02-03T04:05:06Z");
  const { cert } = makeCertificate({ hosts: ["demo.test", "127.0.0.9"], validTo });
  const read = new X509Certificate(cert);
  expect(read.subject).toBe("CN=demo.test");
  expect(read.subjectAltName).toBe("DNS:demo.test, IP Address:127.0.0.9");
  expect(new Date(read.validTo)).toEqual(validTo);
  expect(read.verify(read.publicKey)).toBe(true);
});

it("makes a certificate that only clients with a copy trust", async () => {
  for (let round = 0; round < 20; round++) {
    // Serial numbers and signatures vary in length; a mistake there shows only sometimes.
    const { cert } = makeCertificate();
    expect(new X509Certificate(cert).checkIP("127.0.0.1")).toBe("127.0.0.1");
  }
  const certificate = makeCertificate();
  const server = createServer(certificate, (socket: TLSSocket) => socket.end());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const trusting = connect({ port, host: "127.0.0.1", ca: certificate.cert });
  await once(trusting, "secureConnect");
  expect(trusting.authorized).toBe(true);
  const wary = connect({ port, host: "127.0.0.1" });
  await expect(once(wary, "secureConnect")).rejects.toMatchObject({
    code: "DEPTH_ZERO_SELF_SIGNED_CERT",
  });
  trusting.destroy();
  server.close();
});
