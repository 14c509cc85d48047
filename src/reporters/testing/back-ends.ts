/** How each back-end that speaks HTTP is opened against a server on this machine. */

import { ACCESS_KEY } from "./check-signature.ts";

interface BackEnd {
  readonly name: string;
  /** Behind `NAME=`. */
  readonly target: (url: string) => string;
}

/** What must never be seen outside of a request. */
export const SECRET = "s3cret-0123456789";

const keyed = (url: string): string => `${url},key=env:SECRET`;
const tokened = (url: string): string => `${url},token=env:SECRET`;

export const HTTP_BACK_ENDS: readonly BackEnd[] = [
  { name: "influxdb", target: (url) => `${url},bucket=load,org=ours,token=env:SECRET` },
  { name: "prometheus", target: tokened },
  { name: "pushgateway", target: (url) => `${url},user=ada,password=env:SECRET` },
  { name: "otlp", target: (url) => `${url},header=env:HEADER` },
  { name: "datadog", target: keyed },
  { name: "newrelic", target: keyed },
  { name: "honeycomb", target: keyed },
  { name: "webhook", target: tokened },
  { name: "cloudwatch", target: (url) => url },
  { name: "eventbridge", target: (url) => url },
  { name: "lambda", target: (url) => `${url},function=load-results` },
];

/** Those of them that sign, instead of sending a secret. */
export const SIGNED: ReadonlySet<string> = new Set(["cloudwatch", "eventbridge", "lambda"]);

export const ENVIRONMENT = {
  SECRET,
  HEADER: `authorization: Bearer ${SECRET}`,
  AWS_ACCESS_KEY_ID: ACCESS_KEY,
  AWS_SECRET_ACCESS_KEY: SECRET,
};
