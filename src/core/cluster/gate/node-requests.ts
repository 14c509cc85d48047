/** Nodes of a cluster as seen by a gate: the gates, and the nodes of each datacenter through its managers. */

import { type ClientAnswer, type ClientRequest, type NodeView, refusal } from "../messages.ts";
import type { GateContext } from "./context.ts";
import type { ManagerAnswer } from "./types.ts";

type Answer = (answer: ClientAnswer) => void;

/** `answer` is null if the manager did not answer. */
interface Answered {
  readonly datacenter: string;
  readonly answer: ManagerAnswer | null;
}

export class NodeRequests {
  readonly #context: GateContext;

  constructor(context: GateContext) {
    this.#context = context;
  }

  views(done: (nodes: readonly NodeView[]) => void): void {
    const { datacenters, isDraining, lookup, options, peers } = this.#context;
    const seen = new Map(this.#context.gates.view().gates.map((one) => [one.name, one.label]));
    const { gates, self, version } = options;
    const here = { status: isDraining ? "draining" : "alive", version } as const;
    const led = [...lookup.openJobs()];
    const own = gates.map(
      (name): NodeView => ({
        ...{ name, role: "gate", datacenter: "", incarnation: 0, cores: 0, coresUsed: 0 },
        ...(name === self ? here : peers.view(name)),
        leads: led.filter(({ primary }) => primary === name).length,
        health: seen.get(name) ?? "",
      }),
    );
    const { names } = datacenters;
    askAll(
      this.#context,
      names.map((datacenter) => ({ datacenter, request: { kind: "nodes" } })),
      (answers) => {
        const others = answers.map((one, at) =>
          one?.kind === "nodes" ? one.nodes : this.#managersOf(names[at] ?? ""),
        );
        done([...own, ...others.flat()]);
      },
    );
  }

  /** Configured managers of a datacenter where none answers, and which are connected. */
  #managersOf(datacenter: string): readonly NodeView[] {
    const { calls, options } = this.#context;
    const reached = calls.reachedIn(datacenter);
    const { managers = [] } = options.datacenters.find(({ name }) => name === datacenter) ?? {};
    return managers.map((name) => ({
      ...{ name, role: "manager", datacenter, incarnation: 0, cores: 0, coresUsed: 0 },
      ...{ version: "", leads: 0, status: reached.includes(name) ? "alive" : "lost" },
    }));
  }

  drain(node: string, answer: Answer): void {
    const { options, peers } = this.#context;
    if (node === options.self) {
      if (peers.size === 0) answer(refusal("invalid", `nobody could take over: ${node} is alone`));
      else answer(this.#drainSelf());
      return;
    }
    if (options.gates.some((name) => name === node)) {
      const address = options.addresses[node] ?? null;
      answer({ ...refusal("notLeader", `ask ${node} itself`), address });
      return;
    }
    const request = { kind: "drain", node } as const;
    this.#withNode(node, answer, ({ datacenter, role }) => {
      // Only the manager itself can drain.
      const manager = role === "manager" ? node : null;
      const call = { datacenter, manager, message: { kind: "client", request } } as const;
      this.#context.ask(call, (said) => answer(controlledBy(said, datacenter)));
    });
  }

  #drainSelf(): ClientAnswer {
    if (!this.#context.isDraining) this.#context.log("info", "gate.draining", {});
    this.#context.isDraining = true;
    this.#context.gates.onDrains(this.#context.options.self, true);
    this.#context.emit({ kind: "giveUp" });
    return { kind: "controlled" };
  }

  /** Removes a node at every connected manager: each keeps its own list. */
  remove(node: string, answer: Answer): void {
    const { options } = this.#context;
    if (options.gates.some((name) => name === node)) {
      answer(refusal("invalid", `${node} stands in the configuration of the others: take it out`));
      return;
    }
    this.#datacenterOf(node, (datacenter) => {
      if (datacenter === null) answer(refusal("invalid", `there is no node ${node}`));
      else
        this.#askManagers([datacenter], { kind: "removeNode", node }, (answers) => {
          const said = answers.map((one) => controlledBy(one.answer, datacenter));
          answer(said.find(({ kind }) => kind !== "controlled") ?? { kind: "controlled" });
        });
    });
  }

  /**
   * Datacenter where any manager lists a node; some may have removed it while others were unreachable. Null if none.
   */
  #datacenterOf(node: string, done: (datacenter: string | null) => void): void {
    this.#askManagers(this.#context.datacenters.names, { kind: "nodes" }, (answers) => {
      const lists = answers.find(
        ({ answer }) => answer?.kind === "nodes" && answer.nodes.some(({ name }) => name === node),
      );
      done(lists?.datacenter ?? null);
    });
  }

  /** Asks every connected manager. */
  #askManagers(
    datacenters: readonly string[],
    request: ClientRequest,
    done: (answers: readonly Answered[]) => void,
  ): void {
    const asked = datacenters.flatMap((datacenter) =>
      this.#context.calls.reachedIn(datacenter).map((manager) => ({ datacenter, manager })),
    );
    const answers: Answered[] = [];
    if (asked.length === 0) done(answers);
    for (const { datacenter, manager } of asked) {
      const message = { kind: "client", request } as const;
      this.#context.ask({ datacenter, manager, message }, (answer) => {
        answers.push({ datacenter, answer });
        if (answers.length === asked.length) done(answers);
      });
    }
  }

  #withNode(node: string, answer: Answer, then: (view: NodeView) => void): void {
    this.views((nodes) => {
      const found = nodes.find(({ name }) => name === node);
      if (found === undefined) answer(refusal("invalid", `there is no node ${node}`));
      else then(found);
    });
  }
}

function controlledBy(said: ManagerAnswer | null, datacenter: string): ClientAnswer {
  if (said?.kind === "controlled" || said?.kind === "refused") return said;
  return refusal("retry", `no manager of ${datacenter} answers`);
}

/** Asks one manager per datacenter, and another if it does not answer or refuses; null where none answers. */
export function askAll(
  context: GateContext,
  asked: readonly { readonly datacenter: string; readonly request: ClientRequest }[],
  done: (answers: readonly (ManagerAnswer | null)[]) => void,
): void {
  const answers: (ManagerAnswer | null)[] = asked.map(() => null);
  let open = asked.length;
  const settle = (at: number, answer: ManagerAnswer | null): void => {
    answers[at] = answer;
    if (--open === 0) done(answers);
  };
  if (open === 0) done([]);
  for (const [at, { datacenter, request }] of asked.entries()) {
    const message = { kind: "client", request } as const;
    let others = context.calls.reachedIn(datacenter).length - 1;
    // Asks the next manager in turn each time.
    const ask = (): void => context.ask({ datacenter, manager: null, message }, onAnswer);
    const onAnswer = (answer: ManagerAnswer | null): void => {
      if ((answer !== null && answer.kind !== "refused") || others <= 0) settle(at, answer);
      else {
        others--;
        ask();
      }
    };
    ask();
  }
}
