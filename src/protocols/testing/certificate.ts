/** A certificate for 127.0.0.1 as files, for the servers of one test; deleted with it. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { makeCertificate } from "../../demo/certificate.ts";

interface CertificateFiles {
  readonly cert: string;
  readonly certFile: string;
  readonly keyFile: string;
}

export function certificateFiles(): CertificateFiles {
  const folder = mkdtempSync(join(tmpdir(), "hyperscale-certificate-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const { cert, key } = makeCertificate({ hosts: ["127.0.0.1"] });
  const [certFile, keyFile] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  writeFileSync(certFile, cert);
  writeFileSync(keyFile, key, { mode: 0o600 });
  return { cert, certFile, keyFile };
}
