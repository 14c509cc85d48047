/**
 * An error whose message is meant for the caller. Every other error of a handler is answered with "the request failed":
 * only chosen texts leave the process. (CODEC-7)
 */
export class HttpError extends Error {
  override readonly name = "HttpError";
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}
