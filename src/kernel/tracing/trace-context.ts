/** The ids of a span and its trace, as headers and jobs carry them. */
export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  /** Whether the trace is recorded. */
  readonly sampled: boolean;
}

/** Writes a context in the format of the header `traceparent`. Source: W3C Trace Context, section 3.2. */
export function toTraceparent({ traceId, spanId, sampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`;
}

/** Reads a `traceparent`. @returns `undefined` when it is not valid */
export function fromTraceparent(text: string): TraceContext | undefined {
  const found = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-|$)/.exec(text);
  if (!found || text.startsWith('ff')) return undefined;
  return contextOf(found[1]!, found[2]!, found[3]!);
}

/** Writes a context in Jaeger's format. Source: Jaeger's documentation, "Client Libraries", "Propagation Format". */
export function toJaeger({ traceId, spanId, sampled }: TraceContext): string {
  return `${traceId}:${spanId}:0:${sampled ? 1 : 0}`;
}

/**
 * Reads a context in Jaeger's format. Its ids may lack leading zeros, and its colons may be percent-encoded.
 * @returns `undefined` when it is not valid
 */
export function fromJaeger(text: string): TraceContext | undefined {
  const found = /^([0-9a-f]{1,32}):([0-9a-f]{1,16}):[0-9a-f]{1,16}:([0-9a-f]{1,2})$/i.exec(
    text.replace(/%3A/gi, ':'),
  );
  if (!found) return undefined;
  return contextOf(
    found[1]!.toLowerCase().padStart(32, '0'),
    found[2]!.toLowerCase().padStart(16, '0'),
    found[3]!,
  );
}

function contextOf(traceId: string, spanId: string, flags: string): TraceContext | undefined {
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}
