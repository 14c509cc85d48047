/** Why a ping got no answer: the kind, the phase, a text, and what to check next. */

import { errorText } from "../../core/base/error-text.ts";

export type Phase = "dns" | "connect" | "tls" | "first byte" | "body";

type FailureKind =
  | "dns"
  | "refused"
  | "unreachable"
  | "timeout"
  | "reset"
  | "tls"
  | "protocol"
  | "other";

export interface PingFailure {
  readonly ok: false;
  readonly kind: FailureKind;
  readonly phase: Phase;
  /** The system's or OpenSSL's own code, for searching. */
  readonly code: string;
  readonly message: string;
  readonly hint: string;
  readonly totalMs: number;
}

interface Where {
  readonly phase: Phase;
  readonly host: string;
  readonly port: number;
  readonly secure: boolean;
  readonly timeoutMs: number;
  readonly totalMs: number;
}

interface Explanation {
  readonly kind: FailureKind;
  readonly message: string;
  readonly hint: string;
}

const NOT_TLS = /WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST|RECORD_LAYER_FAILURE/;
const DISTRUSTED = /CERT|SELF_SIGNED|ISSUER|UNABLE_TO_VERIFY|ALTNAME|CRL/;

export function explain(error: unknown, where: Where): PingFailure {
  const message = errorText(error);
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return {
    ok: false,
    phase: where.phase,
    code,
    totalMs: where.totalMs,
    ...explanation(code, message, where),
  };
}

function explanation(code: string, message: string, where: Where): Explanation {
  if (code === "PING_TIMEOUT") return timeout(where);
  if (where.phase === "dns") return dns(code, message, where.host);
  if (where.phase === "tls") return tls(code, message, where);
  return network(code, where) ?? protocol(code, message, where);
}

function timeout({ phase, timeoutMs, host, port }: Where): Explanation {
  const hints: Readonly<Record<Phase, string>> = {
    dns: "The name server does not answer: look at the network and the resolver settings.",
    connect: `Nothing came back from ${host}:${port}: a firewall that drops packets, or a machine that is off.`,
    tls: "The port took the connection but does not shake hands: is TLS spoken there?",
    "first byte":
      "The server took the request and does not answer: it hangs, or needs a longer --timeout.",
    body: "The answer began and did not end in time: a slow or endless body; try a longer --timeout.",
  };
  const message = `no ${phase === "dns" ? "address" : phase} within ${timeoutMs} ms`;
  return { kind: "timeout", message, hint: hints[phase] };
}

function dns(code: string, message: string, host: string): Explanation {
  if (code === "ENOTFOUND") {
    return {
      kind: "dns",
      message: `there is no host ${host}`,
      hint: "Check the spelling, and whether the name is known only inside a VPN.",
    };
  }
  return {
    kind: "dns",
    message: `the name ${host} could not be looked up (${code || message})`,
    hint: "The name server does not answer: look at the network and the resolver settings.",
  };
}

function tls(code: string, message: string, { host, port }: Where): Explanation {
  if (NOT_TLS.test(code) || NOT_TLS.test(message.toUpperCase().replaceAll(" ", "_"))) {
    return {
      kind: "tls",
      message: `${host}:${port} does not speak TLS`,
      hint: `Try http://${host}:${port}/ instead of https.`,
    };
  }
  if (code === "CERT_HAS_EXPIRED") {
    return {
      kind: "tls",
      message: "the certificate has expired",
      hint: "Renew it on the server; --insecure shows the rest all the same.",
    };
  }
  if (DISTRUSTED.test(code)) {
    return {
      kind: "tls",
      message: `the certificate is not trusted: ${message}`,
      hint: "Use --insecure to go on without trust, or NODE_EXTRA_CA_CERTS=ca.pem to add an authority.",
    };
  }
  if (code === "ECONNRESET") {
    return {
      kind: "tls",
      message: "the server closed the connection during the TLS handshake",
      hint: `Does ${host}:${port} speak TLS? If not, use http://.`,
    };
  }
  return {
    kind: "tls",
    message: `TLS failed: ${message}`,
    hint: "Compare TLS versions and ciphers.",
  };
}

function network(code: string, { phase, host, port, secure }: Where): Explanation | null {
  switch (code) {
    case "ECONNREFUSED":
      return {
        kind: "refused",
        message: `nothing listens on ${host}:${port}`,
        hint: "Is the server started, and is the port right? `hyperscale demo-target` starts one to try.",
      };
    case "EHOSTUNREACH":
    case "ENETUNREACH":
    case "EADDRNOTAVAIL":
      return {
        kind: "unreachable",
        message: `no way to ${host} from this machine (${code})`,
        hint: "Look at the network, the VPN and the routing table.",
      };
    case "ECONNRESET":
    case "EPIPE":
      return {
        kind: "reset",
        message:
          phase === "body"
            ? "the connection broke in the middle of the body"
            : "the server closed the connection without an answer",
        hint: secure
          ? "A proxy or the server gave up; look at its log."
          : "Look at the server's log; if the port speaks TLS, use https://.",
      };
    default:
      return null;
  }
}

function protocol(code: string, message: string, { host, port }: Where): Explanation {
  if (code.startsWith("HPE_")) {
    return {
      kind: "protocol",
      message: `the answer is not valid HTTP/1.1 (${message.replace(/^Parse Error: /, "")})`,
      hint: `Is ${host}:${port} an HTTP server? Another protocol may live on this port.`,
    };
  }
  return { kind: "other", message: `${message}${code === "" ? "" : ` (${code})`}`, hint: "" };
}
