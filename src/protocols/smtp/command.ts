/** Commands for a mail server and the values they return. */

export interface Attachment {
  readonly filename: string;
  readonly content: string | Uint8Array;
  /** Derived from the file name when not given. */
  readonly contentType?: string;
}

export interface Mail {
  readonly from: string;
  readonly to: string | readonly string[];
  readonly cc?: string | readonly string[];
  /** Recipients that appear in no header. */
  readonly bcc?: string | readonly string[];
  readonly subject?: string;
  readonly text?: string;
  readonly html?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly attachments?: readonly Attachment[];
}

export interface SmtpCommand {
  /** Null only checks that the server responds. */
  readonly mail: Mail | null;
}

export interface Delivery {
  /** Addresses that the server accepted. */
  readonly accepted: readonly string[];
  /** Addresses that the server refused while it accepted others. */
  readonly rejected: readonly string[];
  /** The server's final reply, usually with the queue id of the mail. */
  readonly response: string;
}
