import type { TraceContext } from './trace-context.ts';

export type AttributeValue = string | number | boolean;

/** Kinds of spans. Source: OpenTelemetry protocol, `trace.proto`, `SpanKind`. */
export const spanKinds = { internal: 1, server: 2, client: 3, consumer: 5 } as const;

export type SpanKind = keyof typeof spanKinds;

/** The part of a trace that this process records for one request or job. */
export interface LocalTrace {
  traceId: string;
  sampled: boolean;
  /** The span of the request or job itself; all other spans begin within it. */
  first: Span | undefined;
  /** Ended spans. They wait for the end of the first span, because the trace id may change until then. */
  waiting: Span[];
  /** Whether the first span has ended: spans that begin later belong to another trace. */
  isOver: boolean;
}

/** A named operation with a start time and a duration. */
export class Span {
  readonly trace: LocalTrace;
  readonly spanId: string;
  parentSpanId: string | undefined;
  name: string;
  readonly kind: SpanKind;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  /** Milliseconds. */
  duration = 0;
  readonly attributes: Record<string, AttributeValue> = {};
  /**
   * The span that caused this span. Present only if the cause is recorded and its trace had ended before this span
   * began.
   */
  readonly cause: TraceContext | undefined;
  isFailed = false;

  constructor(
    fields: Pick<Span, 'trace' | 'spanId' | 'parentSpanId' | 'name' | 'kind' | 'startedAt' | 'cause'>,
  ) {
    this.trace = fields.trace;
    this.spanId = fields.spanId;
    this.parentSpanId = fields.parentSpanId;
    this.name = fields.name;
    this.kind = fields.kind;
    this.startedAt = fields.startedAt;
    this.cause = fields.cause;
  }

  get context(): TraceContext {
    return { traceId: this.trace.traceId, spanId: this.spanId, sampled: this.trace.sampled };
  }

  /** Makes this span, the first one of a local trace, a child of a span of another server. */
  continueFrom({ traceId, spanId, sampled }: TraceContext): void {
    this.trace.traceId = traceId;
    this.trace.sampled = sampled;
    this.parentSpanId = spanId;
  }
}
