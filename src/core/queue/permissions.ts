/**
 * Permissions of tokens. A token has all of them, or one of three scopes: clients submit and see work, workers claim
 * and report it, operators do what clients do and also control the queue. Methods not listed here require all
 * permissions.
 */

export const TOKEN_SCOPES = ["client", "worker", "operator"] as const;
export type TokenScope = (typeof TOKEN_SCOPES)[number];

const FILES = ["use_file", "put_file_chunk", "put_file", "get_file_chunk"];

const CLIENT = [
  ...["submit_task", "submit_tasks", "submit_graph", "get_task", "list_tasks"],
  ...["cancel_task", "requeue_task"],
  ...["task_events", "task_attempts", "task_log", "task_files", ...FILES],
  ...["cluster_status", "queue_activity", "list_queues", "list_schedules"],
];

const METHODS: Readonly<Record<TokenScope, ReadonlySet<string>>> = {
  client: new Set(CLIENT),
  operator: new Set([
    ...CLIENT,
    ...["cancel_tasks", "requeue_tasks", "delete_tasks", "put_queue", "set_role"],
    ...["put_schedule", "pause_schedule", "run_schedule", "remove_schedule"],
    ...["drain_node", "recover_stale_leases"],
  ]),
  worker: new Set([
    ...["register_node", "heartbeat", "drain_node", "deregister_node", "find_executable_tasks"],
    ...["acquire_lease", "report_started", "renew_lease", "release_lease", "watch_leases"],
    ...[
      "report_completion",
      "report_progress",
      "execution_history",
      "recover_stale_leases",
      "attach_file",
      ...FILES,
    ],
  ]),
};

/** All methods that some token besides the nodes' own may call. */
export const SCOPED_METHODS: readonly string[] = [
  ...new Set(TOKEN_SCOPES.flatMap((scope) => [...METHODS[scope]])),
];

/** Returns why a token must not call a method; null when it may. */
export function methodRefusal(scope: TokenScope, method: string): string | null {
  if (METHODS[scope].has(method)) return null;
  const others = TOKEN_SCOPES.filter((other) => METHODS[other].has(method));
  const whose =
    others.length === 0 ? "none of these" : others.map((one) => `${one}s`).join(" and ");
  return `the token is for ${scope}s, and ${method} is for ${whose}`;
}

/** Tasks inside of a call: the call itself, a list of tasks, the tasks of a graph. */
const TASK_DEPTH_MAX = 3;

/** Whether a call submits a load test with a workflow file in the task: code of the caller. */
export function carriesCode(params: unknown, depth = 0): boolean {
  if (typeof params !== "object" || params === null || depth > TASK_DEPTH_MAX) return false;
  const { executor, input } = params as { readonly executor?: unknown; readonly input?: unknown };
  // A member of a graph may be called "executor": only a task has a name there.
  if (typeof executor === "string") {
    const hasBundle = typeof input === "object" && input !== null && "bundle" in input;
    return executor === "loadtest" && hasBundle;
  }
  return Object.values(params).some((part) => carriesCode(part, depth + 1));
}

/** Returns why a token must not send code; null when it may. Clients may where the node allows it. */
export function codeRefusal(
  scope: TokenScope | null,
  params: unknown,
  clientBundles: boolean,
): string | null {
  if (scope !== "client" || clientBundles || !carriesCode(params)) return null;
  return "the token is for clients, who send no workflow files to this queue (--client-bundles)";
}

/** The same for paths beside the methods: workers read nothing, clients what belongs to tasks. */
export function pathRefusal(scope: TokenScope, path: string): string | null {
  if (path === "/" || scope === "operator") return null;
  const ofTasks = path === "/follow" || path.startsWith("/tasks/");
  if (scope === "client" && ofTasks) return null;
  const whose = ofTasks ? "clients and operators" : "operators";
  return `the token is for ${scope}s, and ${path} is for ${whose}`;
}
