/** The leader over the network, for a worker in another process. */

import { RemoteFiles } from "../api/remote-files.ts";
import type { RpcClient } from "../api/rpc-client.ts";
import type {
  AcquireAsk,
  ExecutionHistory,
  Grant,
  LeaderPort,
  LeaseRef,
  NodeRegistration,
  Progress,
  Report,
} from "../api/types.ts";

/** Timeout of calls that answer at once: after it the worker asks again, perhaps the next leader. */
const SHORT_CALL_MS_MAX = 10_000;
/** Extra time for a long poll beyond its wait. */
const POLL_MARGIN_MS = 10_000;

export class RemoteLeader implements LeaderPort {
  readonly files: RemoteFiles;
  readonly #rpc: RpcClient;

  constructor(rpc: RpcClient) {
    this.#rpc = rpc;
    this.files = new RemoteFiles(rpc);
  }

  async register(node: NodeRegistration): Promise<void> {
    await this.#rpc.call("register_node", node);
  }

  async heartbeat(nodeId: string, run: string): Promise<boolean> {
    const answer = (await this.#short("heartbeat", { node_id: nodeId, run })) as {
      readonly known: boolean;
    };
    return answer.known;
  }

  async drain(nodeId: string, run: string): Promise<void> {
    await this.#rpc.call("drain_node", { node_id: nodeId, run });
  }

  async deregister(nodeId: string, run: string): Promise<void> {
    await this.#rpc.call("deregister_node", { node_id: nodeId, run });
  }

  async acquire(ask: AcquireAsk): Promise<readonly Grant[]> {
    const params = {
      node_id: ask.nodeId,
      run: ask.run,
      max: ask.max,
      wait_ms: ask.waitMs,
      held: ask.held,
      raw: true,
    };
    const answer = await this.#rpc.call("acquire_lease", params, ask.waitMs + POLL_MARGIN_MS);
    return (answer as { readonly leases: readonly Grant[] }).leases;
  }

  async watch(nodeId: string, run: string, waitMs: number): Promise<readonly string[]> {
    const answer = await this.#rpc.call(
      "watch_leases",
      { node_id: nodeId, run, wait_ms: waitMs },
      waitMs + POLL_MARGIN_MS,
    );
    return (answer as { readonly revoked: readonly string[] }).revoked;
  }

  async started(nodeId: string, leases: readonly LeaseRef[]): Promise<void> {
    await this.#rpc.call("report_started", { node_id: nodeId, leases });
  }

  async report(nodeId: string, reports: readonly Report[]): Promise<readonly string[]> {
    const wire = reports.map(({ result, ...rest }) => ({ ...rest, result_json: result }));
    const answer = await this.#rpc.call("report_completion", { node_id: nodeId, reports: wire });
    return (answer as { readonly refused: readonly string[] }).refused;
  }

  async renew(nodeId: string, leases: readonly LeaseRef[]): Promise<readonly string[]> {
    const answer = await this.#short("renew_lease", { node_id: nodeId, leases });
    return (answer as { readonly lost: readonly string[] }).lost;
  }

  async release(nodeId: string, leases: readonly LeaseRef[]): Promise<void> {
    await this.#rpc.call("release_lease", { node_id: nodeId, leases });
  }

  async progress(nodeId: string, messages: readonly Progress[]): Promise<void> {
    await this.#rpc.call("report_progress", { node_id: nodeId, messages });
  }

  async history({ task_id, lease_token }: LeaseRef): Promise<ExecutionHistory> {
    return (await this.#short("execution_history", { task_id, lease_token })) as ExecutionHistory;
  }

  #short(method: string, params: unknown): Promise<unknown> {
    return this.#rpc.call(method, params, SHORT_CALL_MS_MAX);
  }
}
