/**
 * Real servers for tests. A program is found on the machine, or among Debian packages that were downloaded into a cache
 * folder (`apt-get download`, unpacked by `dpkg -x`): nothing is installed, and no service is started. `npm run
 * test:protocols` downloads what is missing; other runs use what is available. Servers listen on loopback, run as the
 * testing user, and stop with the test.
 */

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import net from "node:net";
import { homedir, tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";

/** A program, and the Debian package that contains it. */
export interface ServerPackage {
  /** Name of the executable: "redis-server". */
  readonly program: string;
  readonly package: string;
}

export interface Program {
  readonly path: string;
  readonly environment: NodeJS.ProcessEnv;
}

const FETCH = process.env["HYPERSCALE_FETCH_SERVERS"] === "1";
const FETCH_MS_MAX = 300_000;
const START_MS_MAX = 240_000;
const STOP_MS_MAX = 10_000;
const FOLDERS = ["usr/bin", "usr/sbin", "bin", "sbin"];
const LIBRARIES = { arm64: "aarch64-linux-gnu", x64: "x86_64-linux-gnu" };

function cacheFolder(): string {
  const cache = process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache");
  return process.env["HYPERSCALE_SERVERS"] ?? join(cache, "hyperscale", "servers");
}

/** Null where the program is not on the machine and could not be downloaded. */
export function findProgram(wanted: ServerPackage): Program | null {
  const onPath = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin", "/sbin"]
    .filter((folder) => folder !== "")
    .map((folder) => join(folder, wanted.program))
    .find((path) => existsSync(path));
  if (onPath !== undefined) return { path: onPath, environment: process.env };
  const root = join(cacheFolder(), wanted.package);
  if (!existsSync(root) && FETCH) fetchPackage(wanted.package, root);
  const path = FOLDERS.map((folder) => join(root, folder, wanted.program)).find((file) =>
    existsSync(file),
  );
  if (path === undefined) return null;
  const triple = LIBRARIES[process.arch as keyof typeof LIBRARIES] ?? "";
  const libraries = [join(root, "usr/lib", triple), join(root, "lib", triple)].join(":");
  return { path, environment: { ...process.env, LD_LIBRARY_PATH: libraries } };
}

const PYTHON = "/usr/bin/python3";
const MODULES = "usr/lib/python3/dist-packages";

/** Debian's Python with one of its modules, installed or downloaded; null where either is missing. */
export function findPythonModule(wanted: ServerPackage): Program | null {
  if (!existsSync(PYTHON)) return null;
  if (existsSync(join("/", MODULES, wanted.program)))
    return { path: PYTHON, environment: process.env };
  const root = join(cacheFolder(), wanted.package);
  if (!existsSync(root) && FETCH) fetchPackage(wanted.package, root);
  const modules = join(root, MODULES);
  if (!existsSync(join(modules, wanted.program))) return null;
  return { path: PYTHON, environment: { ...process.env, PYTHONPATH: modules } };
}

/** A folder whose node_modules contain the package; null where it was not or cannot be downloaded. */
export function findNpmPackage(name: string, version: string): string | null {
  const folder = join(cacheFolder(), `npm-${name.replaceAll(/[@/]/g, "-")}-${version}`);
  const isThere = (): boolean => existsSync(join(folder, "node_modules", name, "package.json"));
  if (!isThere() && FETCH) {
    const options = ["--ignore-scripts", "--engine-strict=false", "--no-audit", "--no-fund"];
    mkdirSync(folder, { recursive: true });
    spawnSync("npm", ["install", "--prefix", folder, ...options, `${name}@${version}`], {
      stdio: "ignore",
      timeout: FETCH_MS_MAX,
    });
  }
  return isThere() ? folder : null;
}

/** Reason of skipped tests. */
export function absent({ package: name, program }: ServerPackage): string {
  return `no ${program} (package ${name}; npm run test:protocols fetches it)`;
}

/** Downloads the package with its missing dependencies; leaves nothing behind when that fails. */
function fetchPackage(name: string, root: string): void {
  mkdirSync(dirname(root), { recursive: true });
  const place = mkdtempSync(`${root}.`);
  const run = (command: string, ...args: readonly string[]): string => {
    const done = spawnSync(command, args, { cwd: place, encoding: "utf8", timeout: FETCH_MS_MAX });
    if (done.status === 0) return done.stdout;
    throw new Error(`${command} ${args.join(" ")}: ${done.stderr ?? done.error?.message}`);
  };
  try {
    const plan = run("apt-get", "install", "--simulate", "--no-install-recommends", "-qq", name);
    const missing = [...plan.matchAll(/^Inst (\S+)/gm)].map(([, found = ""]) => found);
    run("apt-get", "download", "-qq", ...new Set([...missing, name]));
    const unpacked = join(place, "root");
    run("sh", "-c", 'mkdir root && for file in *.deb; do dpkg -x "$file" root || exit 1; done');
    if (!existsSync(root)) renameSync(unpacked, root);
  } catch (error) {
    process.stderr.write(`${name} could not be fetched: ${String(error).slice(0, 300)}\n`);
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}

interface RunningServer {
  readonly port: number;
  /** Private folder, deleted at the end. */
  readonly folder: string;
  /** The last part of its output. */
  output(): string;
  signal(name: NodeJS.Signals): void;
  stop(): Promise<void>;
}

interface ServerStart {
  readonly program: Program;
  /** Command line; files may be written into the folder. */
  args(port: number, folder: string): readonly string[];
  /** Variables in addition to the program's own. */
  environment?(port: number, folder: string): NodeJS.ProcessEnv;
  /** Port whose connection signals readiness; the server's own port by default. */
  readonly probePort?: (port: number) => number;
  /** For servers that choose their own port: finds it in their output, null while it is missing. */
  readonly announced?: (output: string) => number | null;
}

export async function startServer({
  announced,
  args,
  environment,
  probePort,
  program,
}: ServerStart): Promise<RunningServer> {
  const folder = mkdtempSync(join(tmpdir(), "hyperscale-server-"));
  let port = await freePort();
  const child = spawn(program.path, args(port, folder), {
    cwd: folder,
    env: { ...program.environment, ...environment?.(port, folder) },
    // An open pipe as input, because some servers exit when it ends.
    stdio: ["pipe", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (text) => {
      output = `${output}${String(text)}`.slice(-64 * 1024);
    });
  // Kill the server when a test fails before it stops it, or a run is interrupted.
  const kill = (): boolean => child.kill("SIGKILL");
  process.once("exit", kill);
  const stop = async (): Promise<void> => {
    await ended(child);
    process.off("exit", kill);
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    if (announced !== undefined) port = await until(() => announced(output), child);
    const probed = probePort?.(port) ?? port;
    await until(async () => (await connects(probed)) || null, child);
  } catch (error) {
    await stop();
    throw new Error(`${program.path} did not start: ${String(error)}\n${output.slice(-2_000)}`);
  }
  return { port, folder, output: () => output, signal: (name) => child.kill(name), stop };
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MS_MAX);
  await exited;
  clearTimeout(timer);
}

export async function freePort(): Promise<number> {
  const server = net.createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 0;
}

/** Polls `ask` until it returns a value other than null, while the server runs. */
async function until<Value>(
  ask: () => Value | null | Promise<Value | null>,
  child: ChildProcess,
): Promise<Value> {
  const deadline = Date.now() + START_MS_MAX;
  while (Date.now() < deadline) {
    if (child.exitCode !== null) throw new Error(`it ended with code ${child.exitCode}`);
    const value = await ask();
    if (value !== null) return value;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`it did not listen within ${START_MS_MAX} ms`);
}

function connects(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect(port, "127.0.0.1");
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
}
