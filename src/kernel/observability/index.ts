/** Logs and metrics. */
export { observeEventLoop } from './event-loop-lag.ts';
export { defaultLogConfig, type LogConfig, logConfigOf } from './log-config.ts';
export { createLogger, type Logger, type LoggerOptions, silentLogger } from './logger.ts';
export { Logs } from './logs.ts';
export { createMetrics, type Metrics } from './metrics.ts';
export { PeriodicReading } from './periodic-reading.ts';
export { redactUrl } from './redact.ts';
