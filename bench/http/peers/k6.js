import { check } from "k6";
import http from "k6/http";

export const options = {
  vus: Number(__ENV.BENCH_VUS),
  duration: "30m",
  discardResponseBodies: true,
};

export default function () {
  check(http.get(__ENV.BENCH_URL, { timeout: "20m" }), {
    "status is 200": (r) => r.status === 200,
  });
}
