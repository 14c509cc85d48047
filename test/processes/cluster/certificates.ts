/** An authority and members' certificates for tests, made with openssl. */

import { execFileSync, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

export interface CertificateFiles {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
}

export const hasOpenssl = spawnSync("openssl", ["version"]).status === 0;
export const NO_OPENSSL = "no openssl (package openssl)";

const NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];

/** Signs certificates with claims, each in its own files in the directory. */
export class Authority {
  readonly #directory: string;
  #count = 0;

  constructor(directory: string) {
    this.#directory = directory;
    this.#openssl(
      ...["req", "-x509", ...NEW_KEY, "-keyout", "ca.key", "-out", "ca.pem"],
      ...["-subj", "/CN=ca", "-days", "2"],
    );
  }

  sign(role: string, cluster: string, environment: string): CertificateFiles {
    const name = `peer${++this.#count}`;
    const claims = [`role/${role}`, `cluster/${cluster}`, `env/${environment}`, "dc/dc1"];
    return this.#sign(name, claims.map((claim) => `URI:hyperscale://${claim}`).join(","));
  }

  /** Certificate of a server on the loopback interface. */
  signLoopback(): CertificateFiles {
    return this.#sign(`server${++this.#count}`, "IP:127.0.0.1,DNS:localhost");
  }

  #sign(name: string, names: string): CertificateFiles {
    writeFileSync(this.#at(`${name}.ext`), `subjectAltName=${names}\n`);
    this.#openssl(
      ...["req", ...NEW_KEY, "-keyout", `${name}.key`, "-out", `${name}.csr`],
      ...["-subj", `/CN=${name}`],
    );
    this.#openssl(
      ...["x509", "-req", "-in", `${name}.csr`, "-CA", "ca.pem", "-CAkey", "ca.key"],
      ...["-CAcreateserial", "-out", `${name}.pem`, "-days", "2", "-extfile", `${name}.ext`],
    );
    return { cert: this.#at(`${name}.pem`), key: this.#at(`${name}.key`), ca: this.#at("ca.pem") };
  }

  #at(name: string): string {
    return join(this.#directory, name);
  }

  #openssl(...args: string[]): void {
    execFileSync("openssl", args, { cwd: this.#directory, stdio: "pipe" });
  }
}
