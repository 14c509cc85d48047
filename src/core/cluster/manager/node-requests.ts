/** Nodes of a datacenter as its managers see them: alive, draining, forgotten. */

import {
  type Announced,
  type ClientAnswer,
  type NodeView,
  type Refusal,
  refusal,
  type Taken,
} from "../messages.ts";
import type { ManagerContext } from "./context.ts";

export class NodeRequests {
  readonly #context: ManagerContext;
  /** Pending drain requests to workers: request number to client request id. */
  readonly #drainRequests = new Map<number, number>();
  #isDraining = false;

  constructor(context: ManagerContext) {
    this.#context = context;
  }

  /** True when this manager accepts no new work. */
  get isDraining(): boolean {
    return this.#isDraining;
  }

  views(): readonly NodeView[] {
    const { datacenter, managers, self, version } = this.#context.options;
    const { peers, workers } = this.#context;
    const state = this.#context.datacenter();
    const led = [...(state?.jobs.values() ?? [])]
      .filter(({ phase }) => phase === "admitted")
      .map(({ job }) => this.#context.runOf(job)?.primary);
    const own = { status: this.#isDraining ? "draining" : "alive", version } as const;
    return [
      ...managers.map(
        (name): NodeView => ({
          ...{ name, role: "manager", datacenter, incarnation: 0, cores: 0, coresUsed: 0 },
          ...(name === self ? own : peers.view(name)),
          leads: led.filter((leader) => leader === name).length,
          diskProblem: peers.diskProblemOf(name),
        }),
      ),
      ...workers
        .views((worker, incarnation) => state?.usedCores(worker, incarnation) ?? 0)
        .map((view) => ({ ...view, datacenter, leads: 0 })),
    ];
  }

  drain(id: number, node: string): void {
    const { options, peers, workers } = this.#context;
    if (node === options.self) {
      this.#answer(id, peers.size === 0 ? alone(node) : this.#drainSelf());
      return;
    }
    if (options.managers.some((name) => name === node)) {
      const address = options.addresses[node] ?? null;
      this.#answer(id, { ...refusal("notLeader", `ask ${node} itself`), address });
      return;
    }
    const known = workers.statusOf(node);
    if (known !== "alive") {
      const why = known === null ? `there is no node ${node}` : `${node} is lost`;
      this.#answer(id, refusal("invalid", why));
      return;
    }
    const request = this.#context.newRequest();
    this.#drainRequests.set(request, id);
    const message = { kind: "drain" } as const;
    this.#context.emit({ kind: "worker", id: request, worker: node, message });
  }

  #drainSelf(): ClientAnswer {
    if (!this.#isDraining) this.#context.log("info", "manager.draining", {});
    this.#isDraining = true;
    this.#context.emit({ kind: "giveUp" });
    return { kind: "controlled" };
  }

  /** True when the answer belongs to one of these requests. */
  onWorkerAnswer(request: number, answer: Announced | Taken | Refusal | null): boolean {
    const id = this.#drainRequests.get(request);
    if (id === undefined) return false;
    this.#drainRequests.delete(request);
    const isAccepted = answer?.kind === "taken";
    const silent = refusal("retry", "the worker does not answer");
    this.#answer(id, isAccepted ? { kind: "controlled" } : silent);
    return true;
  }

  remove(id: number, node: string): void {
    const { options, workers } = this.#context;
    const isManager = options.managers.some((name) => name === node);
    const configured = `${node} stands in the configuration of the others: take it out there`;
    if (isManager) this.#answer(id, refusal("invalid", configured));
    else if (workers.statusOf(node) === "alive")
      this.#answer(id, refusal("invalid", `${node} is alive: drain it and end it first`));
    else {
      workers.forget(node);
      this.#answer(id, { kind: "controlled" });
    }
  }

  #answer(id: number, answer: ClientAnswer): void {
    this.#context.emit({ kind: "answer", id, answer });
  }
}

function alone(node: string): ClientAnswer {
  return refusal("invalid", `nobody could take over: ${node} reaches no other manager`);
}
