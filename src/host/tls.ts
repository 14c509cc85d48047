/** Certificates for mutual TLS: reading them, and the claims of a peer's certificate. */

import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { checkServerIdentity, type PeerCertificate, type TLSSocket } from "node:tls";

export interface TlsMaterial {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
  readonly checkServerIdentity: (host: string, certificate: PeerCertificate) => Error | undefined;
}

/** Throws with the file's name when one cannot be read or the certificate is not one. */
export function readTlsMaterial(files: {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
  readonly verifyHostname: boolean;
}): TlsMaterial {
  const cert = readFileSync(files.cert, "utf8");
  const certificate = new X509Certificate(cert);
  if (new Date(certificate.validTo).getTime() < Date.now()) {
    throw new Error(`${files.cert}: the certificate ended on ${certificate.validTo}`);
  }
  return {
    cert,
    key: readFileSync(files.key, "utf8"),
    ca: readFileSync(files.ca, "utf8"),
    // The chain is verified either way; members are identified by their claims, hosts only if names are checked.
    checkServerIdentity: files.verifyHostname ? checkServerIdentity : () => undefined,
  };
}

/** The URIs among the alternative names of a verified peer. */
export function alternativeUris(socket: TLSSocket): readonly string[] {
  const names = socket.getPeerX509Certificate()?.subjectAltName ?? "";
  // Node quotes a name that contains a separator, so a comma inside one cannot split it in two.
  return [...names.matchAll(/URI:("(?:[^"\\]|\\.)*"|[^,]*)/g)].map(([, uri = ""]) =>
    uri.startsWith('"') ? (JSON.parse(uri) as string) : uri,
  );
}
