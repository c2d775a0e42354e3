import type { AttributeValue, Span } from './span.ts';
import { spanKinds } from './span.ts';

/** The code `STATUS_CODE_ERROR` of a span's status. */
const errorStatus = 2;

/** The attributes that all spans of a process share, and the maximum length of all attribute values. */
export interface TraceResource {
  readonly version: string;
  readonly attributes: Readonly<Record<string, AttributeValue>>;
  /** Maximum characters of an attribute; the rest is cut off. */
  readonly maxValueLength: number;
}

/** Returns the body of a request to `/v1/traces`. Source: OpenTelemetry protocol, "JSON Protobuf Encoding". */
export function otlpRequest(spans: readonly Span[], resource: TraceResource): string {
  const { maxValueLength } = resource;
  return JSON.stringify({
    resourceSpans: [
      {
        resource: { attributes: attributesOf(resource.attributes, maxValueLength) },
        scopeSpans: [
          {
            scope: { name: 'hearth', version: resource.version },
            spans: spans.map((span) => otlpSpan(span, maxValueLength)),
          },
        ],
      },
    ],
  });
}

function otlpSpan(span: Span, maxValueLength: number): object {
  const { cause } = span;
  return {
    traceId: span.trace.traceId,
    spanId: span.spanId,
    ...(span.parentSpanId !== undefined && { parentSpanId: span.parentSpanId }),
    name: span.name,
    kind: spanKinds[span.kind],
    startTimeUnixNano: nanoseconds(span.startedAt),
    endTimeUnixNano: nanoseconds(span.startedAt + span.duration),
    attributes: attributesOf(span.attributes, maxValueLength),
    ...(cause && { links: [{ traceId: cause.traceId, spanId: cause.spanId }] }),
    status: span.isFailed ? { code: errorStatus } : {},
  };
}

/** Converts milliseconds to nanoseconds, as a text because a number cannot hold so many digits exactly. */
const nanoseconds = (milliseconds: number) => `${Math.round(milliseconds * 1000)}000`;

function attributesOf(attributes: Readonly<Record<string, AttributeValue>>, maxLength: number): object[] {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: otlpValue(value, maxLength) }));
}

function otlpValue(value: AttributeValue, maxLength: number): object {
  if (typeof value === 'boolean') return { boolValue: value };
  if (typeof value === 'string') return { stringValue: value.slice(0, maxLength) };
  return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value };
}
