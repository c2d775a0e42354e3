import type { Logger as PinoLogger } from 'pino';

/** A structured logger; child loggers carry the request id. */
export type Logger = Pick<PinoLogger, 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'child' | 'level'>;
