/** Credentials as environments of AWS have them, unless the settings name others. */

import type { Settings } from "../settings.ts";

export const AWS_KEYS = {
  accessKey: { kind: "secret", about: "the access key", default: "env:AWS_ACCESS_KEY_ID" },
  secretKey: { kind: "secret", about: "the secret key", default: "env:AWS_SECRET_ACCESS_KEY" },
  sessionToken: { kind: "secret", about: "of temporary credentials", optional: true },
} as const satisfies Settings;
