/**
 * Google access tokens from the key of a service account: exchanges a signed assertion for a token that is valid for
 * an hour. (developers.google.com/identity/protocols/oauth2/service-account)
 */

import { createPrivateKey, type KeyObject } from "node:crypto";
import type { Ask } from "../pipeline/http.ts";
import { ReporterError } from "../settings.ts";
import { signedJwt } from "./jwt.ts";

/** A token is renewed this long before it expires. */
const EARLY_SECONDS = 60;
const TOKEN_SECONDS = 3_600;

export const GOOGLE_KEY = {
  kind: "secret",
  about: "the key of the service account, as its JSON file: file:PATH",
  optional: true,
} as const;

interface ServiceAccount {
  readonly email: string;
  readonly key: KeyObject;
  readonly tokenUrl: URL;
}

export class GoogleTokens {
  readonly #account: ServiceAccount | null;
  readonly #scope: string;
  #held: { readonly token: string; readonly untilMs: number } | undefined;

  /** Without a key, requests carry no token, as emulators expect. */
  constructor(reporter: string, keyJson: string | undefined, scope: string) {
    this.#account = keyJson === undefined ? null : accountOf(reporter, keyJson);
    this.#scope = scope;
  }

  async headers(ask: Ask, nowMs: number): Promise<Readonly<Record<string, string>>> {
    if (this.#account === null) return {};
    if (this.#held === undefined || nowMs >= this.#held.untilMs)
      this.#held = await this.#fetched(this.#account, ask, nowMs);
    return { authorization: `Bearer ${this.#held.token}` };
  }

  async #fetched({ email, key, tokenUrl }: ServiceAccount, ask: Ask, nowMs: number) {
    const now = Math.floor(nowMs / 1_000);
    const claims = { iss: email, scope: this.#scope, aud: tokenUrl.href };
    const assertion = signedJwt(key, { ...claims, iat: now, exp: now + TOKEN_SECONDS });
    const form = new URLSearchParams({
      ...{ grant_type: "urn:ietf:params:oauth:grant-type:jwt-bearer", assertion },
    });
    const answer = await ask({
      ...{ method: "POST", url: tokenUrl, body: Buffer.from(form.toString()) },
      headers: { "content-type": "application/x-www-form-urlencoded" },
    });
    const { access_token: token, expires_in: seconds = TOKEN_SECONDS } = JSON.parse(answer) as {
      readonly access_token?: string;
      readonly expires_in?: number;
    };
    if (token === undefined) throw new Error("no token came for the key of the service account");
    return { token, untilMs: nowMs + (seconds - EARLY_SECONDS) * 1_000 };
  }
}

function accountOf(reporter: string, keyJson: string): ServiceAccount {
  try {
    const { client_email, private_key, token_uri } = JSON.parse(keyJson) as Record<string, string>;
    return {
      email: client_email ?? "",
      key: createPrivateKey(private_key ?? ""),
      tokenUrl: new URL(token_uri ?? "https://oauth2.googleapis.com/token"),
    };
  } catch {
    // The parser's own message would reveal parts of the key.
    throw new ReporterError(`report ${reporter}: key is not the JSON file of a service account`);
  }
}
