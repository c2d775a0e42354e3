import type { LoggedError } from '../observability/index.ts';
import { scrub } from './scrub.ts';

/** Fields that all reports of a server contain. */
export interface ReportOrigin {
  /** Name and version of the program: `hearth@1.0.0`. */
  readonly release: string;
  readonly serverName: string;
  /** The option `sentry.environment`. */
  readonly environment: string | null;
  /** The option `server_context`. */
  readonly context: string | null;
}

/** A line of a stack. */
interface StackFrame {
  readonly function: string;
  readonly filename: string;
  readonly lineno: number;
  readonly colno: number;
  /** Whether the code belongs to the server and not to a library or Node. */
  readonly in_app: boolean;
}

interface ExceptionValue {
  readonly type: string;
  readonly value: string;
  readonly stacktrace: { readonly frames: readonly StackFrame[] };
}

/** Maximum number of errors in a report: the logged error and its causes. */
const maxErrors = 5;

/**
 * Returns the event for a logged error: names, places in the code and scrubbed messages only.
 * Source: Sentry's documentation, "Event Payloads".
 * @param id 32 hexadecimal digits
 * @param now milliseconds since the epoch
 */
export function eventOf(logged: LoggedError, origin: ReportOrigin, id: string, now: number): object {
  return {
    event_id: id,
    timestamp: now / 1000,
    platform: 'node',
    level: logged.level,
    logger: logged.fields['logger'] ?? 'hearth',
    release: origin.release,
    server_name: origin.serverName,
    ...(origin.environment !== null && { environment: origin.environment }),
    logentry: { formatted: scrub(logged.message) },
    tags: {
      ...logged.fields,
      ...(origin.context !== null && { server_context: origin.context }),
    },
    contexts: { runtime: { name: 'node', version: process.versions.node } },
    exception: { values: exceptionsOf(logged.error) },
  };
}

/** Returns an error and its causes in reverse order: the original cause first, the error last. */
export function exceptionsOf(error: Error): ExceptionValue[] {
  const values: ExceptionValue[] = [];
  for (let next: unknown = error; next instanceof Error && values.length < maxErrors; next = next.cause) {
    values.unshift({
      type: /^[\w.]{1,60}$/.test(next.name) ? next.name : 'Error',
      value: scrub(next.message),
      stacktrace: { frames: framesOf(next) },
    });
  }
  return values;
}

/** Returns the frames of a stack, the innermost last. */
function framesOf(error: Error): StackFrame[] {
  return placesIn(error)
    .flatMap((line) => frameOf(line) ?? [])
    .reverse();
}

/**
 * Returns the lines of a stack that name places in the code. Leaves out the message at the beginning of the stack, even
 * if lines of the message look like places. If the message was changed after the stack was made, returns only the lines
 * at the end.
 */
function placesIn({ message, stack = '' }: Error): string[] {
  const start = stack.indexOf(message);
  if (start !== -1 && !stack.slice(0, start).includes('\n'))
    return stack.slice(start + message.length).split('\n');
  const lines = stack.trimEnd().split('\n');
  return lines.slice(lines.findLastIndex((line) => !line.startsWith('    at ')) + 1);
}

function frameOf(line: string): StackFrame | undefined {
  const found = /^ {4}at (?:(.{1,200}?) \()?([^()\s]{1,500}?):(\d+):(\d+)\)?$/.exec(line);
  if (!found) return undefined;
  const [, name = '<anonymous>', path, lineno, colno] = found;
  const filename = pathInProgram(path!);
  return {
    function: name,
    filename,
    lineno: Number(lineno),
    colno: Number(colno),
    in_app: !/^node:|node_modules\//.test(filename),
  };
}

/** Returns a path relative to the program, because folders of the machine may be named after users. */
function pathInProgram(path: string): string {
  if (path.startsWith('node:')) return path;
  return /(?:node_modules|src|dist|bin)\/.*$/.exec(path)?.[0] ?? path.split('/').at(-1)!;
}
