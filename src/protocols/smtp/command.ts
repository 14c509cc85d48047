/** What is asked of a mail server, and what it answers. */

export interface Attachment {
  readonly filename: string;
  readonly content: string | Uint8Array;
  /** By the file's name where it is not given. */
  readonly contentType?: string;
}

export interface Mail {
  readonly from: string;
  readonly to: string | readonly string[];
  readonly cc?: string | readonly string[];
  /** They get it and stand in no header. */
  readonly bcc?: string | readonly string[];
  readonly subject?: string;
  readonly text?: string;
  readonly html?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly attachments?: readonly Attachment[];
}

export interface SmtpCommand {
  /** Null only asks whether the server is there. */
  readonly mail: Mail | null;
}

export interface Delivery {
  /** Addresses that the server took the mail for. */
  readonly accepted: readonly string[];
  /** Addresses that it refused, while it took others. */
  readonly rejected: readonly string[];
  /** What it said in the end, with the name of the mail in its queue as a rule. */
  readonly response: string;
}
