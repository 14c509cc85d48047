/**
 * Version compatibility. The same major is compatible; a feature is used only when both versions have it and both sides
 * announced it. (AD-25)
 */

export interface ProtocolVersion {
  readonly major: number;
  readonly minor: number;
}

export const PROTOCOL: ProtocolVersion = { major: 1, minor: 6 };

/** Introduced in; a feature that is not listed counts as never introduced. (AD-25.5) */
const FEATURES: Readonly<Record<string, ProtocolVersion>> = {
  cancellation: { major: 1, minor: 0 },
  batched_stats: { major: 1, minor: 1 },
  client_reconnection: { major: 1, minor: 2 },
  fence_tokens: { major: 1, minor: 2 },
  compression: { major: 1, minor: 2 },
  keep_alive: { major: 1, minor: 3 },
  log_marks: { major: 1, minor: 4 },
  extensions: { major: 1, minor: 5 },
  merged_frames: { major: 1, minor: 6 },
};

export const CAPABILITIES: readonly string[] = Object.keys(FEATURES);

/** The oldest minor that a node can be configured to speak: earlier features are always used. */
export const MINOR_MIN = 3;

/**
 * Version and capabilities announced by a node that is configured to speak this minor, as in an upgrade that may be
 * undone.
 */
export function spoken(minor: number): {
  readonly versionMajor: number;
  readonly versionMinor: number;
  readonly capabilities: readonly string[];
} {
  const version = { major: PROTOCOL.major, minor };
  const capabilities = CAPABILITIES.filter((name) => supports(version, name));
  return { versionMajor: version.major, versionMinor: minor, capabilities };
}

interface Capabilities {
  readonly version: ProtocolVersion;
  readonly capabilities: readonly string[];
}

export type Negotiated =
  | { readonly ok: true; readonly version: ProtocolVersion; readonly features: readonly string[] }
  | { readonly ok: false; readonly problem: string };

export function negotiate(ours: Capabilities, theirs: Capabilities): Negotiated {
  if (ours.version.major !== theirs.version.major) {
    return {
      ok: false,
      problem:
        `protocol ${formatVersion(theirs.version)} is not spoken here: ` +
        `this node speaks ${formatVersion(ours.version)}; majors must be equal`,
    };
  }
  const version = {
    major: ours.version.major,
    minor: Math.min(ours.version.minor, theirs.version.minor),
  };
  const features = ours.capabilities.filter(
    (name) => theirs.capabilities.includes(name) && supports(version, name),
  );
  return { ok: true, version, features };
}

export function supports(version: ProtocolVersion, feature: string): boolean {
  const introduced = Object.hasOwn(FEATURES, feature) ? FEATURES[feature] : undefined;
  if (introduced === undefined) return false;
  if (version.major !== introduced.major) return version.major > introduced.major;
  return version.minor >= introduced.minor;
}

/** "1.2"; null for anything else. */
export function parseVersion(text: string): ProtocolVersion | null {
  const match = /^(\d{1,4})\.(\d{1,4})$/.exec(text);
  return match === null ? null : { major: Number(match[1]), minor: Number(match[2]) };
}

export function formatVersion({ major, minor }: ProtocolVersion): string {
  return `${major}.${minor}`;
}
