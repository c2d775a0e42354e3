import { type DestinationStream, type LevelWithSilent, type Logger as PinoLogger, pino } from 'pino';
import { errorLevel, type LoggedErrors } from './logged-errors.ts';

/** A structured logger; child loggers add fields to each line, for example the request id. */
export type Logger = Pick<
  PinoLogger,
  'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'child' | 'level' | 'isLevelEnabled'
>;

export interface LoggerOptions {
  readonly level: LevelWithSilent;
  /** Receives the lines. */
  readonly destination: DestinationStream;
  /** The value of the field `server_context` of each line; without it, lines do not have the field. */
  readonly context?: string | null;
  /** Receives the errors that are logged. */
  readonly loggedErrors?: LoggedErrors | undefined;
}

/** Creates a logger that writes one line of JSON per entry. */
export function createLogger({ level, destination, context, loggedErrors }: LoggerOptions): Logger {
  return pino(
    {
      level,
      base: context ? { server_context: context } : null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: describeError },
      ...(loggedErrors && {
        hooks: {
          logMethod(args, method, pinoLevel) {
            method.apply(this, args);
            if (pinoLevel >= errorLevel) loggedErrors.logged(pinoLevel, this.bindings(), args);
          },
        },
      }),
    },
    destination,
  );
}

/** For tests and tools that log nothing. */
export const silentLogger: Logger = pino({ level: 'silent' });

interface DescribedError {
  readonly name: string;
  readonly message: string;
  readonly code: unknown;
  readonly stack: string | undefined;
  readonly cause: DescribedError | undefined;
}

/** Describes an error by its name, message, code, stack and causes only: other members may be secret. */
function describeError(error: unknown): DescribedError {
  if (!(error instanceof Error)) {
    return {
      name: typeof error,
      message: String(error),
      code: undefined,
      stack: undefined,
      cause: undefined,
    };
  }
  const { name, message, stack, cause } = error;
  return {
    name,
    message,
    code: (error as NodeJS.ErrnoException).code,
    stack,
    cause: cause === undefined ? undefined : describeError(cause),
  };
}
