/** How each back-end that speaks HTTP is opened against a server on this machine. */

interface BackEnd {
  readonly name: string;
  /** Behind `NAME=`. */
  readonly target: (url: string) => string;
  readonly env?: Readonly<Record<string, string>>;
}

/** What must never be seen outside of a request. */
export const SECRET = "s3cret-0123456789";

export const HTTP_BACK_ENDS: readonly BackEnd[] = [
  {
    name: "influxdb",
    target: (url) => `${url},bucket=load,org=ours,token=env:SECRET`,
    env: { SECRET },
  },
];
