// undici at its fastest: `dispatch` on one client per connection, the next request from the end of
// the last, no promise in between.

import { Client } from "undici";

const [url, connections] = process.argv.slice(2);
const { origin, pathname } = new URL(url);
const options = { path: pathname, method: "GET" };

for (let index = 0; index < Number(connections); index++) {
  const client = new Client(origin, { pipelining: 1, headersTimeout: 0, bodyTimeout: 0 });
  const handler = {
    onRequestStart() {},
    onResponseStart() {},
    onResponseData() {},
    onResponseEnd() {
      client.dispatch(options, handler);
    },
    onResponseError(_controller, error) {
      throw error;
    },
  };
  client.dispatch(options, handler);
}
