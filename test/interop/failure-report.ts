import { readFileSync } from 'node:fs';
import type { Homeserver } from './interop-network.ts';
import type { InteropUser } from './interop-user.ts';

/** Maximum number of lines shown of each log. */
const maxLines = 12;

/** Maximum characters shown of each line. */
const maxLineLength = 400;

/** Kinds of log lines to show: warnings and errors, and the reference server's federation requests. */
const shownKinds = [
  / (WARNING|ERROR|CRITICAL) |"level":"(warn|error|fatal)"/,
  / INFO synapse\.(http\.matrixfederationclient|federation\.)/,
];

/** Length of each server's log at one moment, in characters. */
export type LogLengths = ReadonlyMap<Homeserver, number>;

export function logLengths(servers: readonly Homeserver[]): LogLengths {
  return new Map(servers.map((server) => [server, logOf(server).length]));
}

/**
 * Describes how a failed scenario ended: the last responses to each of its users, and the last relevant lines
 * of the servers' logs since it began.
 */
export function failureReport(users: readonly InteropUser[], since: LogLengths): string {
  const answers = users.flatMap(({ id, lastAnswers }) =>
    lastAnswers.length > 0 ? [`last responses to ${id}:`, ...lastAnswers.map(cut)] : [],
  );
  const logs = [...since].flatMap(([server, lengthBefore]) => {
    const lines = logOf(server).slice(lengthBefore).split('\n');
    const shown = shownKinds.flatMap((kind) => lines.filter((line) => kind.test(line)).slice(-maxLines));
    return [`last log lines of ${server.name}:`, ...(shown.length > 0 ? shown.map(cut) : ['none'])];
  });
  return [...answers, ...logs].join('\n');
}

const cut = (line: string) => `  ${line.slice(0, maxLineLength)}`;

/** Returns an empty text when there is no log file. */
function logOf({ logFile }: Homeserver): string {
  try {
    return readFileSync(logFile, 'utf8');
  } catch {
    return '';
  }
}
