/** Logs and metrics, and the options of traces and error reports. */
export { observeEventLoop } from './event-loop-lag.ts';
export { type JaegerSettings, readJaegerConfig, type SamplerSettings } from './jaeger-config.ts';
export { defaultLogConfig, type LogConfig, logConfigOf } from './log-config.ts';
export { type LoggedError, LoggedErrors } from './logged-errors.ts';
export { createLogger, type Logger, type LoggerOptions, silentLogger } from './logger.ts';
export { Logs } from './logs.ts';
export { createMetrics, type Metrics } from './metrics.ts';
export { PeriodicReading } from './periodic-reading.ts';
export { ProcessReading, type ProcessUsage } from './process-usage.ts';
export { redactUrl } from './redact.ts';
export { parseDsn, type SentryProject } from './sentry-dsn.ts';
export { UncaughtErrors } from './uncaught-errors.ts';
