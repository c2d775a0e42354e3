import { AsyncLocalStorage } from 'node:async_hooks';
import type { Clock } from '../clock.ts';
import type { Randomness } from '../randomness.ts';
import type { Sampler } from './sampler.ts';
import { type AttributeValue, type LocalTrace, Span, type SpanKind } from './span.ts';
import type { TraceContext } from './trace-context.ts';

export interface TracerDeps {
  readonly sampler: Sampler;
  readonly clock: Clock;
  readonly randomness: Randomness;
  /** Receives the ended spans of recorded traces. */
  readonly ended: (spans: readonly Span[]) => void;
}

/** Describes a span that begins. */
export interface NewSpan {
  readonly name: string;
  readonly kind: SpanKind;
  readonly attributes?: Readonly<Record<string, AttributeValue>>;
  /** The parent of the new span; by default the open span of this asynchronous context. */
  readonly parent?: TraceContext | undefined;
}

/** Maximum number of ended spans of one trace that wait for the end of the first span. Further spans are dropped. */
const maxWaiting = 500;

/** Makes spans. The open span is passed on to all asynchronous work that begins within it (`AsyncLocalStorage`). */
export class Tracer {
  readonly #deps: TracerDeps;
  readonly #open = new AsyncLocalStorage<Span>();

  constructor(deps: TracerDeps) {
    this.#deps = deps;
  }

  /** The open span of this asynchronous context; `undefined` without one, and when its request has ended. */
  get current(): Span | undefined {
    const span = this.#open.getStore();
    return span === undefined || span.trace.isOver ? undefined : span;
  }

  /**
   * Runs `work` within a new span, which ends when the promise of `work` settles. Work that a request has caused may
   * begin after the end of the request, for instance in a queue. The span of such work begins a trace of its own with a
   * link to the request.
   */
  async run<T>(description: NewSpan, work: (span: Span) => T | Promise<T>): Promise<T> {
    const { clock } = this.#deps;
    const span = this.#begin(description);
    const begunAt = clock.monotonic();
    try {
      return await this.#open.run(span, work, span);
    } catch (error) {
      span.isFailed = true;
      throw error;
    } finally {
      span.duration = clock.monotonic() - begunAt;
      this.#end(span);
    }
  }

  #begin({ name, kind, attributes, parent }: NewSpan): Span {
    const open = parent === undefined ? this.#open.getStore() : undefined;
    const isInside = open !== undefined && !open.trace.isOver;
    const trace = isInside ? open.trace : this.#newTrace(parent);
    const span = new Span({
      trace,
      spanId: this.#id(8),
      parentSpanId: isInside ? open.spanId : parent?.spanId,
      name,
      kind,
      startedAt: this.#deps.clock.now(),
      cause: !isInside && open?.trace.sampled ? open.context : undefined,
    });
    Object.assign(span.attributes, attributes);
    trace.first ??= span;
    return span;
  }

  #newTrace(parent: TraceContext | undefined): LocalTrace {
    return {
      traceId: parent?.traceId ?? this.#id(16),
      sampled: parent?.sampled ?? this.#deps.sampler(),
      first: undefined,
      waiting: [],
      isOver: false,
    };
  }

  #end(span: Span): void {
    const { trace } = span;
    if (trace.isOver) {
      if (trace.sampled) this.#deps.ended([span]);
      return;
    }
    if (trace.waiting.length < maxWaiting || trace.first === span) trace.waiting.push(span);
    if (trace.first !== span) return;
    trace.isOver = true;
    if (trace.sampled) this.#deps.ended(trace.waiting);
    trace.waiting = [];
  }

  #id(bytes: number): string {
    return Buffer.from(this.#deps.randomness.bytes(bytes)).toString('hex');
  }
}
