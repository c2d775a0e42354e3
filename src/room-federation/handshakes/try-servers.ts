import {
  errorForClient,
  FederationError,
  RemoteError,
  ServerUnavailable,
} from '../../federation-client/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import { MatrixError, notFound, unknown } from '../../protocol/index.ts';
import { MissingEvents } from '../../room-engine/index.ts';
import { HandshakeFailure } from './handshake-failure.ts';

/** How many servers are asked, and for how many milliseconds another one is begun with. */
const [maxServers, longestSearch] = [12, 120_000];

/**
 * Asks one server after the other until one has done it. Those that could not be reached lately are asked when the
 * others were of no use.
 * @throws MatrixError that says best why nobody has
 */
export async function tryServers<T>(
  servers: readonly string[],
  clock: Clock,
  ask: (server: string, ignoreBackoff: boolean) => Promise<T>,
): Promise<T> {
  const begun = clock.monotonic();
  const failures: unknown[] = [];
  const leftAlone = new Map<string, unknown>();
  const tryAll = async (
    some: readonly string[],
    ignoreBackoff: boolean,
  ): Promise<{ value: T } | undefined> => {
    for (const server of some) {
      if (clock.monotonic() - begun > longestSearch) return undefined;
      try {
        return { value: await ask(server, ignoreBackoff) };
      } catch (error) {
        if (!isServerFailure(error)) throw error;
        if (error instanceof ServerUnavailable && error.retryAt !== undefined) leftAlone.set(server, error);
        else failures.push(error);
      }
    }
    return undefined;
  };
  const found =
    (await tryAll([...new Set(servers)].slice(0, maxServers), false)) ??
    (await tryAll([...leftAlone.keys()], true));
  if (found) return found.value;
  // What a server has said counts for more than that it was not asked.
  throw bestError([...failures, ...leftAlone.values()]);
}

/** Whether it is that one server's fault, and another one may do better. */
export function isServerFailure(error: unknown): boolean {
  return (
    error instanceof FederationError ||
    error instanceof HandshakeFailure ||
    error instanceof MatrixError ||
    error instanceof MissingEvents
  );
}

/** The error that says most to a client, of those of several servers. */
function bestError(failures: readonly unknown[]): MatrixError {
  let best: MatrixError | undefined;
  for (const failure of failures) {
    const error = handshakeErrorForClient(failure);
    if (!best || weight(error) > weight(best)) best = error;
  }
  return best ?? notFound('No server is known that is in the room');
}

/** What a client is told when a handshake on its behalf has failed. */
export function handshakeErrorForClient(error: unknown): MatrixError {
  if (error instanceof RemoteError && faultsOfOurs.has(error.errcode)) return unknown(error.message, 502);
  const forClient = errorForClient(error);
  if (forClient instanceof MatrixError) return forClient;
  return unknown(
    error instanceof HandshakeFailure ? error.message : 'Another server did not do its part',
    502,
  );
}

/** The client has not made the event that another server did not like. */
const faultsOfOurs = new Set(['M_MISSING_PARAM', 'M_INVALID_PARAM', 'M_BAD_JSON', 'M_UNRECOGNIZED']);

/** Who says that the room is not for the user knows more than who does not know the room. */
function weight({ errcode }: MatrixError): number {
  if (errcode === 'M_UNKNOWN') return 0;
  if (errcode === 'M_NOT_FOUND') return 1;
  if (errcode === 'M_UNABLE_TO_AUTHORISE_JOIN' || errcode === 'M_UNABLE_TO_GRANT_JOIN') return 2;
  return 3;
}
