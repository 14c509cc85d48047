/** Calls to the node that served this page, and whether it answers. */

const TOKEN = "hyperscale-queue-token";
/** Timeout of a call. */
const ANSWER_MS_MAX = 8_000;
/** Smaller clock differences are ignored: the answer has whole seconds. */
const CLOCKS_APART_MS_MIN = 2_000;

/** The node answered with an error. */
export class ApiError extends Error {
  readonly status: number;

  constructor(message: string, status: number) {
    super(message);
    this.status = status;
  }
}

/** State of the connection to the node. */
export interface NodeLink {
  /** On this browser's clock. */
  readonly answeredAtMs: number | null;
  readonly silentSinceMs: number | null;
  readonly locked: boolean;
}

let link: NodeLink = { answeredAtMs: null, silentSinceMs: null, locked: false };
let clockOffsetMs = 0;
let lastId = 0;
const listeners = new Set<(now: NodeLink) => void>();

export function nodeLink(): NodeLink {
  return link;
}

export function onLink(listener: (now: NodeLink) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function setLink(next: Partial<NodeLink>): void {
  link = { ...link, ...next };
  for (const listener of listeners) listener(link);
}

/** Returns the time on the node's clock, on which times of tasks are based. */
export function nodeNow(): number {
  return Date.now() + clockOffsetMs;
}

export function setToken(token: string): void {
  sessionStorage.setItem(TOKEN, token);
  setLink({ locked: false });
}

/**
 * Takes `#token=…` from the address a node prints: keeps the token for this tab and removes it from the address bar.
 */
export function takeToken(): void {
  const [, token, rest = ""] = /^#token=([^&]+)&?(.*)$/.exec(location.hash) ?? [];
  if (token === undefined) return;
  sessionStorage.setItem(TOKEN, decodeURIComponent(token));
  history.replaceState(null, "", `${location.pathname}${rest === "" ? "" : `#${rest}`}`);
}

function headers(): Record<string, string> {
  const token = sessionStorage.getItem(TOKEN);
  return token === null ? {} : { authorization: `Bearer ${token}` };
}

async function ask(path: string, init: RequestInit): Promise<Response> {
  try {
    const response = await fetch(path, { ...init, headers: { ...headers(), ...init.headers } });
    received(response);
    return response;
  } catch (error) {
    if (init.signal?.aborted !== true || isTimeout(init.signal))
      setLink({ silentSinceMs: link.silentSinceMs ?? Date.now() });
    throw error;
  }
}

function isTimeout(signal: AbortSignal): boolean {
  return signal.reason instanceof DOMException && signal.reason.name === "TimeoutError";
}

function received(response: Response): void {
  const apartMs = Date.parse(response.headers.get("date") ?? "") - Date.now();
  clockOffsetMs = Math.abs(apartMs) >= CLOCKS_APART_MS_MIN ? apartMs : 0;
  const locked = response.status === 401;
  setLink({ answeredAtMs: Date.now(), silentSinceMs: null, locked });
}

export async function call<Result>(method: string, params: object): Promise<Result> {
  const response = await ask("/", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: ++lastId, method, params }),
    signal: AbortSignal.timeout(ANSWER_MS_MAX),
  });
  const body = (await response.json()) as { result?: Result; error?: { message: string } };
  if (body.error !== undefined) throw new ApiError(body.error.message, response.status);
  return body.result as Result;
}

/** Follows a task by server-sent events, with fetch instead of EventSource, which cannot send a token. */
export async function follow(
  id: string,
  signal: AbortSignal,
  onMessage: (event: string, data: unknown) => void,
): Promise<void> {
  const response = await ask(`/tasks/${id}/follow`, { signal });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (!response.ok || reader === undefined)
    throw new ApiError(`cannot follow task ${id}: ${response.status}`, response.status);
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const event = /^event: (.+)$/m.exec(block)?.[1];
      const data = /^data: (.+)$/m.exec(block)?.[1];
      if (event !== undefined && data !== undefined) onMessage(event, JSON.parse(data));
    }
  }
}

/** Saves a file of a task: a link could not send the token. */
export async function download(id: string, name: string): Promise<void> {
  const response = await ask(`/tasks/${id}/files/${encodeURIComponent(name)}`, {});
  if (!response.ok) throw new ApiError(`cannot read ${name}`, response.status);
  const anchor = document.createElement("a");
  anchor.href = URL.createObjectURL(await response.blob());
  anchor.download = `task-${id}-${name}`;
  anchor.click();
  URL.revokeObjectURL(anchor.href);
}
