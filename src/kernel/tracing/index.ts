/**
 * Traces of requests and jobs, sent by the OpenTelemetry protocol (OTLP, decision 0251). Loaded only where
 * `opentracing.enabled` is on.
 */
export { SpanExporter } from './exporter.ts';
export { samplerOf } from './sampler.ts';
export { Tracer } from './tracer.ts';
export { Tracing } from './tracing.ts';
