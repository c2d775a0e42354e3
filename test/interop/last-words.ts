import { readFileSync } from 'node:fs';
import type { Member } from './network.ts';
import type { Someone } from './someone.ts';

/** Lines of each log that are shown, and characters of each. */
const [maxLines, longestLine] = [12, 400];

/** What servers say of what they could not do, and of what they said to each other. */
const telling = [
  / (WARNING|ERROR|CRITICAL) |"level":"(warn|error|fatal)"/,
  / INFO synapse\.(http\.matrixfederationclient|federation\.)/,
];

/** Where the logs of servers end now. */
export type LogEnds = ReadonlyMap<Member, number>;

export function logEnds(servers: readonly Member[]): LogEnds {
  return new Map(servers.map((server) => [server, logOf(server).length]));
}

/**
 * What a scenario that failed ended with: the last answers that each of its people got, and the last lines that tell
 * something of the servers' logs since it began. That is what somebody needs who was not there.
 */
export function lastWords(people: readonly Someone[], since: LogEnds): string {
  const answers = people.flatMap(({ id, lastAnswers }) =>
    lastAnswers.length > 0 ? [`${id} was last answered:`, ...lastAnswers.map(cut)] : [],
  );
  const logs = [...since].flatMap(([server, end]) => {
    const lines = logOf(server).slice(end).split('\n');
    const shown = telling.flatMap((kind) => lines.filter((line) => kind.test(line)).slice(-maxLines));
    return [`${server.name} logged last:`, ...(shown.length > 0 ? shown.map(cut) : ['nothing'])];
  });
  return [...answers, ...logs].join('\n');
}

const cut = (line: string) => `  ${line.slice(0, longestLine)}`;

/** Empty where there is no log, as of a server that was removed. */
function logOf({ logFile }: Member): string {
  try {
    return readFileSync(logFile, 'utf8');
  } catch {
    return '';
  }
}
