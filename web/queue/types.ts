/** The parts of the API's answers that the page shows. */

export interface Task {
  readonly id: string;
  readonly executor: string;
  readonly state: string;
  readonly attempt_id: number;
  readonly max_attempts: number;
  readonly input: unknown;
  readonly result: unknown;
  readonly error: { readonly message: string } | null;
  readonly last_assigned_node: string | null;
  readonly created_at: string;
  readonly started_at: string | null;
  readonly finished_at: string | null;
  readonly waiting_reason?: string;
}

export interface TaskEvent {
  readonly event_id: number;
  readonly event_type: string;
  readonly old_state: string | null;
  readonly new_state: string | null;
  readonly node_id: string | null;
  readonly attempt_id: number | null;
  readonly timestamp: string;
  readonly details: unknown;
}

export interface Status {
  readonly leader: { readonly node_id: string; readonly epoch: number } | null;
  readonly nodes: readonly {
    readonly node_id: string;
    readonly status: string;
    readonly max_parallel: number;
    readonly executor_types: readonly string[];
  }[];
  readonly counts: Readonly<
    Record<"QUEUED" | "RUNNING" | "SUCCEEDED" | "FAILED" | "CANCELED", number>
  >;
}
