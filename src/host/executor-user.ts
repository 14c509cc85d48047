/**
 * The user that code of others runs as. A node started as root runs it as another user, who cannot read the node's
 * keys, tokens, memory or `HYPERSCALE_*` variables. A node of any other user cannot, and says so.
 */

import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { errorText } from "../core/base/error-text.ts";

/** Owns no files on any system. */
const DEFAULT_EXECUTOR_USER = "nobody";
/** Name that leaves code of others the rights of the node. */
const SAME_USER = "root";
const PROBE_MS_MAX = 30_000;
/** Variables of ours that may contain secrets. */
const OWN_VARIABLES = /^(?:HYPERSCALE|MERCURY)_/;

export interface ExecutorUser {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
}

/** `user` is null when code of others has the rights of this process; `why` is the reason. */
export type ExecutorRights =
  | { readonly user: ExecutorUser; readonly why: null }
  | { readonly user: null; readonly why: string };

interface Asked {
  /** Undefined: `nobody` if possible, and else no other user. */
  readonly name: string | undefined;
  /** A program that the user has to be able to read. */
  readonly program: string;
}

/** Throws when the named user cannot be used. */
export function executorRights({ name, program }: Asked): ExecutorRights {
  const without = (why: string): ExecutorRights => {
    if (name === undefined) return { user: null, why };
    throw new Error(`executorUser ${name}: ${why}`);
  };
  if (name === SAME_USER) return { user: null, why: "executorUser is root" };
  if (process.getuid?.() !== 0)
    return without("only a node that was started as root can change it");
  const wanted = name ?? DEFAULT_EXECUTOR_USER;
  const user = findUser(wanted, readUsers());
  if (user === null) return without(`there is no user ${wanted} on this machine`);
  if (user.uid === 0) return without(`${wanted} is root by another name`);
  const problem = readProblem(user, program);
  return problem === null ? { user, why: null } : without(problem);
}

/** Text for the start of a node. */
export function rightsText({ user, why }: ExecutorRights): string {
  if (user !== null) return `job code runs as user ${user.name}`;
  return `job code has the rights of this node: ${why}`;
}

/** Options for `spawn` and `fork`: as the user, without variables of ours, with their own home. */
export function asUser(user: ExecutorUser | null): {
  readonly uid?: number;
  readonly gid?: number;
  readonly env?: NodeJS.ProcessEnv;
} {
  if (user === null) return {};
  const { gid, uid } = user;
  const kept = Object.entries(process.env).filter(([name]) => !OWN_VARIABLES.test(name));
  const env = { ...Object.fromEntries(kept), HOME: tmpdir(), USER: user.name, LOGNAME: user.name };
  return { uid, gid, env };
}

/** Finds a line of /etc/passwd by name or number; a number without a line is a user as well. */
export function findUser(wanted: string, passwd: string): ExecutorUser | null {
  for (const line of passwd.split("\n")) {
    const [name = "", , uid = "", gid = ""] = line.split(":");
    if (name === "" || (name !== wanted && uid !== wanted)) continue;
    return { name, uid: Number(uid), gid: Number(gid) };
  }
  if (!/^\d{1,9}$/.test(wanted)) return null;
  return { name: wanted, uid: Number(wanted), gid: Number(wanted) };
}

function readUsers(): string {
  try {
    return readFileSync("/etc/passwd", "utf8");
  } catch {
    return "";
  }
}

/** Whether the user may start this Node.js and read our program: an installation below /root is not accessible. */
function readProblem(user: ExecutorUser, program: string): string | null {
  const script = "require('node:fs').accessSync(process.argv[1], 4)";
  const probe = spawnSync(process.execPath, ["-e", script, program], {
    ...asUser(user),
    cwd: "/",
    timeout: PROBE_MS_MAX,
    stdio: "ignore",
  });
  if (probe.status === 0) return null;
  const reason = probe.error === undefined ? "" : ` (${errorText(probe.error)})`;
  return `user ${user.name} cannot read ${program} or start ${process.execPath}${reason}`;
}
