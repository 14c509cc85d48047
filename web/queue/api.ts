/** Calls to the node this page came from. */

const TOKEN = "hyperscale-queue-token";
let lastId = 0;

export class ApiError extends Error {
  readonly status: number;

  constructor(message: string, status: number) {
    super(message);
    this.status = status;
  }
}

export function setToken(token: string): void {
  sessionStorage.setItem(TOKEN, token);
}

function headers(): Record<string, string> {
  const token = sessionStorage.getItem(TOKEN);
  return token === null ? {} : { authorization: `Bearer ${token}` };
}

export async function call<Result>(method: string, params: unknown): Promise<Result> {
  const response = await fetch("/", {
    method: "POST",
    headers: { "content-type": "application/json", ...headers() },
    body: JSON.stringify({ jsonrpc: "2.0", id: ++lastId, method, params }),
  });
  const body = (await response.json()) as { result?: Result; error?: { message: string } };
  if (body.error !== undefined) throw new ApiError(body.error.message, response.status);
  return body.result as Result;
}

/** Follows a task by server-sent events; fetch instead of EventSource, which cannot carry a token. */
export async function follow(
  id: string,
  signal: AbortSignal,
  onMessage: (event: string, data: unknown) => void,
): Promise<void> {
  const response = await fetch(`/tasks/${id}/follow`, { headers: headers(), signal });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (!response.ok || reader === undefined) return;
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
