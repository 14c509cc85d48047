/** `hyperscalejs/client`: a cluster for programs. */

export { ClusterError } from "./client.ts";
export {
  Cluster,
  type ConnectOptions,
  connect,
  Job,
  type JobEnd,
  type JobProgress,
  type SubmitOptions,
} from "./cluster.ts";
