/**
 * Who may call what. A token belongs to all, or to one of three: clients submit and see work, workers take and report
 * it, operators do what clients do and steer the queue besides. What is not named here belongs to whoever has all.
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

/** All that some token besides the nodes' own may call. */
export const SCOPED_METHODS: readonly string[] = [
  ...new Set(TOKEN_SCOPES.flatMap((scope) => [...METHODS[scope]])),
];

/** Why a token must not call a method; null when it may. */
export function methodRefusal(scope: TokenScope, method: string): string | null {
  if (METHODS[scope].has(method)) return null;
  const others = TOKEN_SCOPES.filter((other) => METHODS[other].has(method));
  const whose =
    others.length === 0 ? "none of these" : others.map((one) => `${one}s`).join(" and ");
  return `the token is for ${scope}s, and ${method} is for ${whose}`;
}

/** Tasks inside of a call: the call itself, a list of tasks, the tasks of a graph. */
const TASK_DEPTH_MAX = 3;

/** Whether a call submits a load test whose workflow file comes with the task: code of the caller. */
export function carriesCode(params: unknown, depth = 0): boolean {
  if (typeof params !== "object" || params === null || depth > TASK_DEPTH_MAX) return false;
  const { executor, input } = params as { readonly executor?: unknown; readonly input?: unknown };
  if (executor !== undefined) {
    const hasBundle = typeof input === "object" && input !== null && "bundle" in input;
    return executor === "loadtest" && hasBundle;
  }
  return Object.values(params).some((part) => carriesCode(part, depth + 1));
}

/** Why a token must not send code; null when it may. Clients may where the node was told so. */
export function codeRefusal(
  scope: TokenScope | null,
  params: unknown,
  clientBundles: boolean,
): string | null {
  if (scope !== "client" || clientBundles || !carriesCode(params)) return null;
  return "the token is for clients, who send no workflow files to this queue (--client-bundles)";
}

/** The same of what is read beside the methods: workers read nothing, clients what is of tasks. */
export function pathRefusal(scope: TokenScope, path: string): string | null {
  if (path === "/" || scope === "operator") return null;
  const ofTasks = path === "/follow" || path.startsWith("/tasks/");
  if (scope === "client" && ofTasks) return null;
  const whose = ofTasks ? "clients and operators" : "operators";
  return `the token is for ${scope}s, and ${path} is for ${whose}`;
}
