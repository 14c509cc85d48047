/**
 * Independent reader of OpenTelemetry's protocol: protobufjs, with the messages as opentelemetry-proto 1.x publishes
 * them (common, resource, metrics and trace), limited to the fields that are sent. It rejects fields that the schema
 * does not have, so that a misspelt one cannot pass as absent.
 */

import protobuf from "protobufjs";

const SCHEMA = `
syntax = "proto3";
package opentelemetry;
message AnyValue {
  oneof value { string string_value = 1; bool bool_value = 2; int64 int_value = 3; double double_value = 4; }
}
message KeyValue { string key = 1; AnyValue value = 2; }
message InstrumentationScope { string name = 1; string version = 2; repeated KeyValue attributes = 3; }
message Resource { repeated KeyValue attributes = 1; uint32 dropped_attributes_count = 2; }

message ExportMetricsServiceRequest { repeated ResourceMetrics resource_metrics = 1; }
message ResourceMetrics { Resource resource = 1; repeated ScopeMetrics scope_metrics = 2; string schema_url = 3; }
message ScopeMetrics { InstrumentationScope scope = 1; repeated Metric metrics = 2; string schema_url = 3; }
message Metric {
  string name = 1; string description = 2; string unit = 3;
  oneof data { Gauge gauge = 5; Sum sum = 7; ExponentialHistogram exponential_histogram = 10; }
}
message Gauge { repeated NumberDataPoint data_points = 1; }
message Sum {
  repeated NumberDataPoint data_points = 1; AggregationTemporality aggregation_temporality = 2;
  bool is_monotonic = 3;
}
message ExponentialHistogram {
  repeated ExponentialHistogramDataPoint data_points = 1; AggregationTemporality aggregation_temporality = 2;
}
enum AggregationTemporality {
  AGGREGATION_TEMPORALITY_UNSPECIFIED = 0; AGGREGATION_TEMPORALITY_DELTA = 1;
  AGGREGATION_TEMPORALITY_CUMULATIVE = 2;
}
message NumberDataPoint {
  repeated KeyValue attributes = 7; fixed64 start_time_unix_nano = 2; fixed64 time_unix_nano = 3;
  oneof value { double as_double = 4; sfixed64 as_int = 6; } uint32 flags = 8;
}
message ExponentialHistogramDataPoint {
  repeated KeyValue attributes = 1; fixed64 start_time_unix_nano = 2; fixed64 time_unix_nano = 3;
  fixed64 count = 4; optional double sum = 5; sint32 scale = 6; fixed64 zero_count = 7;
  Buckets positive = 8; Buckets negative = 9; uint32 flags = 10;
  optional double min = 12; optional double max = 13; double zero_threshold = 14;
  message Buckets { sint32 offset = 1; repeated uint64 bucket_counts = 2; }
}

message ExportTraceServiceRequest { repeated ResourceSpans resource_spans = 1; }
message ResourceSpans { Resource resource = 1; repeated ScopeSpans scope_spans = 2; string schema_url = 3; }
message ScopeSpans { InstrumentationScope scope = 1; repeated Span spans = 2; string schema_url = 3; }
message Span {
  bytes trace_id = 1; bytes span_id = 2; string trace_state = 3; bytes parent_span_id = 4; string name = 5;
  SpanKind kind = 6; fixed64 start_time_unix_nano = 7; fixed64 end_time_unix_nano = 8;
  repeated KeyValue attributes = 9; uint32 dropped_attributes_count = 10; repeated Event events = 11;
  uint32 dropped_events_count = 12; Status status = 15; fixed32 flags = 16;
  enum SpanKind { SPAN_KIND_UNSPECIFIED = 0; SPAN_KIND_INTERNAL = 1; SPAN_KIND_SERVER = 2; SPAN_KIND_CLIENT = 3; }
  message Event {
    fixed64 time_unix_nano = 1; string name = 2; repeated KeyValue attributes = 3;
    uint32 dropped_attributes_count = 4;
  }
}
message Status {
  string message = 2; StatusCode code = 3;
  enum StatusCode { STATUS_CODE_UNSET = 0; STATUS_CODE_OK = 1; STATUS_CODE_ERROR = 2; }
}
`;

const { root } = protobuf.parse(SCHEMA);

/** Decodes as a receiver does; 64-bit integers are strings. */
export function readOtlp(signal: "Metrics" | "Trace", json: string): unknown {
  const type = root.lookupType(`opentelemetry.Export${signal}ServiceRequest`);
  const sent = withBytes(JSON.parse(json));
  refuseUnknown(type, sent, signal);
  const message = type.fromObject(sent as Record<string, unknown>);
  const problem = type.verify(message);
  if (problem !== null) throw new Error(`${signal}: ${problem}`);
  const wire = type.encode(message).finish();
  return type.toObject(type.decode(wire), { longs: String, bytes: String, defaults: true });
}

/** Ids are hexadecimal in OpenTelemetry's JSON, where protobuf has base64 for bytes. */
function withBytes(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withBytes);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      name,
      /^(trace|span|parentSpan)Id$/.test(name)
        ? Buffer.from(String(inner), "hex")
        : withBytes(inner),
    ]),
  );
}

function refuseUnknown(type: protobuf.Type, value: unknown, path: string): void {
  for (const [name, inner] of Object.entries(Object(value) as Record<string, unknown>)) {
    const field = type.fields[name];
    if (field === undefined) throw new Error(`${path}.${name} is not in the schema`);
    field.resolve();
    const { resolvedType } = field;
    if (!(resolvedType instanceof protobuf.Type)) continue;
    for (const one of Array.isArray(inner) ? inner : [inner])
      refuseUnknown(resolvedType, one, `${path}.${name}`);
  }
}
