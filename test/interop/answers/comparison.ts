import { setTimeout as sleep } from 'node:timers/promises';
import type { InteropNetwork } from '../interop-network.ts';
import { type ComparedRequest, type Subject, titleOf } from './compared-request.ts';
import { ComparedServer } from './compared-server.ts';
import { type Difference, differencesOf } from './differences.ts';
import { normalized } from './normalized.ts';
import type { SigningServer } from './signing-server.ts';

/** A difference between the answers to a request. */
export interface FoundDifference extends Difference {
  readonly subject: string;
  readonly request: string;
}

/** Milliseconds between two tries of a request whose answer may still change. */
const pause = 200;

/** Maximum number of tries of a request whose answer may still change. */
const maxTries = 50;

/** Sends the requests of a subject to both servers and compares the answers. */
export async function compareSubject(
  { hearth, reference }: Pick<InteropNetwork, 'hearth' | 'reference'>,
  signing: SigningServer,
  subject: Subject,
  isExpected: (difference: FoundDifference) => boolean,
): Promise<FoundDifference[]> {
  const servers = await Promise.all(
    [hearth, reference].map((server) => ComparedServer.create(server, signing, subject)),
  );
  const allDifferences: FoundDifference[] = [];
  for (const request of subject.requests) {
    const title = titleOf(request);
    const saved = servers.map((server) => new Map(server.saved));
    for (let tries = 1; ; tries++) {
      const differences = await compare(servers, request);
      const titled = differences.map((difference) => ({
        ...difference,
        subject: subject.subject,
        request: title,
      }));
      const mayChange = request[3]?.settles || request[1].includes('/sync?');
      const isSettled = !mayChange || titled.every(isExpected);
      if (isSettled || tries === maxTries) {
        allDifferences.push(...titled);
        break;
      }
      // Drops the values that this try has saved, so that the next try sends the same request.
      for (const [index, server] of servers.entries()) server.restore(saved[index]!);
      await sleep(pause);
    }
  }
  return allDifferences;
}

async function compare(
  servers: readonly ComparedServer[],
  request: ComparedRequest,
): Promise<readonly Difference[]> {
  const options = request[3] ?? {};
  const answers = await Promise.all(servers.map((server) => server.send(request)));
  const [hearth, reference] = servers.map(({ saved, server: { url } }, index) =>
    normalized(answers[index]!, saved, {
      url,
      anyOrder: options.anyOrder ?? false,
      comparedHeaders: options.headers ?? [],
    }),
  );
  const differences = differencesOf(hearth, reference);
  // When the statuses differ, the bodies are not compared.
  const status = differences.filter(({ at }) => at === 'status');
  return status.length > 0 ? status : differences;
}
