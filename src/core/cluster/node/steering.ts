/** Client requests that change a cluster, as recorded in the audit log. */

import type { StreamEnvelope } from "../../../wire/registry.ts";
import type { ClientRequest } from "../messages.ts";

/** An admitted request of a holder of the client secret. */
export interface Steered {
  readonly kind: "steered";
  /** Name the client gives itself; only its secret is proven. */
  readonly client: string;
  readonly what: "submitted" | "controlled" | "drained" | "removed";
  /** A job, a node, or the key of a job that has no id yet. */
  readonly subject: string;
  readonly detail: Readonly<Record<string, string | number>>;
}

interface Called {
  readonly role: string;
  readonly name: string;
  readonly message: StreamEnvelope;
}

/** Empty for read-only requests and for callers other than clients. */
export function steeringOf({ message, name, role }: Called): readonly Steered[] {
  if (role !== "client" || message.name !== "clientRequest") return [];
  const steered = ofRequest(message.value);
  return steered === null ? [] : [{ kind: "steered", client: name, ...steered }];
}

function ofRequest(request: ClientRequest): Omit<Steered, "kind" | "client"> | null {
  switch (request.kind) {
    case "submit": {
      const { entry, files, name } = request.submission;
      const code = files.find(({ path }) => path === entry)?.hash ?? "";
      const detail = { name, code, files: files.length };
      return { what: "submitted", subject: request.key, detail };
    }
    case "control": {
      const detail = { control: request.control.kind, by: request.by };
      return { what: "controlled", subject: request.job, detail };
    }
    case "drain":
      return { what: "drained", subject: request.node, detail: {} };
    case "removeNode":
      return { what: "removed", subject: request.node, detail: {} };
    default:
      return null;
  }
}
