/** Parts and options of a node. */

import type { TokenScope } from "../core/queue/permissions.ts";
import type { QueueSettings, Role } from "../core/queue/settings.ts";
import type { ServerCertificate } from "../host/control/server.ts";
import type { OpenAudit } from "../host/ports/audit.ts";
import type { Log } from "../host/ports/log.ts";
import type { Executors } from "./worker/executor.ts";

export interface Listen {
  readonly host: string;
  readonly port: number;
}

export interface NodeTls {
  /** With it only HTTPS is served. */
  readonly certificate?: ServerCertificate | undefined;
  /** PEM: certificate authorities for other nodes, in place of the default ones. */
  readonly ca?: string | undefined;
}

export type ScopedTokens = { readonly [Scope in TokenScope]?: string };

export interface NodeOptions {
  readonly nodeId: string;
  readonly role: Role;
  readonly listen: Listen;
  /** Address for other nodes; derived from `listen` when undefined. */
  readonly advertise?: string | undefined;
  /** PostgreSQL; undefined stores everything in `dataDirectory`. */
  readonly databaseUrl?: string | undefined;
  readonly dataDirectory: string;
  readonly token?: string | undefined;
  /** Tokens of clients, workers and operators, in addition to the one for everything. */
  readonly scopedTokens?: ScopedTokens | undefined;
  /** Whether the client token may submit load tests with files of their own, which run as code here. */
  readonly clientBundles?: boolean | undefined;
  /** Without `token`: one that all nodes of this database share is generated and written here for clients. */
  readonly tokenFile?: string | undefined;
  readonly tls?: NodeTls | undefined;
  readonly executors: Executors;
  readonly capabilities?: Readonly<Record<string, unknown>>;
  readonly settings: QueueSettings;
  readonly log: Log;
  /** Called once the node listens. Without it nothing is recorded. */
  readonly openAudit?: () => Promise<OpenAudit>;
}
