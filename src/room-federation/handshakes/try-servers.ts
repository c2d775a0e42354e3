import {
  errorForClient,
  FederationError,
  RemoteError,
  ServerUnavailable,
} from '../../federation-client/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import { MatrixError, notFound, unknown } from '../../protocol/index.ts';
import { MissingEvents } from '../../room-engine/index.ts';
import { HandshakeFailure } from './handshake.ts';

/** Maximum number of servers that receive a request. */
const maxServers = 12;

/** After this many milliseconds, no further server receives a request. */
const maxSearchTime = 120_000;

/**
 * Sends a request to one server after another until one succeeds. Servers in backoff follow when all other servers have
 * failed.
 * @throws MatrixError the most informative error of all servers, or M_NOT_FOUND without servers
 */
export async function tryServers<T>(
  servers: readonly string[],
  clock: Clock,
  send: (server: string, ignoreBackoff: boolean) => Promise<T>,
): Promise<T> {
  const startedAt = clock.monotonic();
  const failures: unknown[] = [];
  const inBackoff = new Map<string, unknown>();
  const tryAll = async (
    candidates: readonly string[],
    ignoreBackoff: boolean,
  ): Promise<{ value: T } | undefined> => {
    for (const server of candidates) {
      if (clock.monotonic() - startedAt > maxSearchTime) return undefined;
      try {
        return { value: await send(server, ignoreBackoff) };
      } catch (error) {
        if (!isServerFailure(error)) throw error;
        if (error instanceof ServerUnavailable && error.retryAt !== undefined) inBackoff.set(server, error);
        else failures.push(error);
      }
    }
    return undefined;
  };
  const success =
    (await tryAll([...new Set(servers)].slice(0, maxServers), false)) ??
    (await tryAll([...inBackoff.keys()], true));
  if (success) return success.value;
  // Among equally informative errors, errors that servers returned are preferred to errors of backoff.
  throw mostInformative([...failures, ...inBackoff.values()]);
}

/** Whether the error is due to the server that received the request, so that another server may succeed. */
export function isServerFailure(error: unknown): boolean {
  return (
    error instanceof FederationError ||
    error instanceof HandshakeFailure ||
    error instanceof MatrixError ||
    error instanceof MissingEvents
  );
}

/** The most informative error for a client. */
function mostInformative(failures: readonly unknown[]): MatrixError {
  let best: MatrixError | undefined;
  for (const failure of failures) {
    const error = handshakeErrorForClient(failure);
    if (!best || priorityOf(error) > priorityOf(best)) best = error;
  }
  return best ?? notFound('No server in the room is known');
}

/** The error for a client whose handshake failed. */
export function handshakeErrorForClient(error: unknown): MatrixError {
  if (error instanceof RemoteError && error.isUnrecognized) return unknown(error.message, 502);
  const forClient = errorForClient(error);
  if (forClient instanceof MatrixError) return forClient;
  return unknown(
    error instanceof HandshakeFailure ? error.message : 'A remote server sent an invalid response',
    502,
  );
}

/**
 * Returns the priority of an error, from the highest: a refusal of the user; a server that cannot authorise the join of
 * a restricted room; a refusal of the event that this server built; an unknown room; M_UNKNOWN; a failure of the
 * server.
 */
function priorityOf({ status, errcode }: MatrixError): number {
  if (status >= 500) return 0;
  if (errcode === 'M_NOT_FOUND') return 2;
  if (eventCodes.has(errcode)) return 3;
  if (errcode === 'M_UNABLE_TO_AUTHORISE_JOIN' || errcode === 'M_UNABLE_TO_GRANT_JOIN') return 4;
  return errcode === 'M_UNKNOWN' ? 1 : 5;
}

/** Errcodes about the event that this server built. */
const eventCodes = new Set(['M_MISSING_PARAM', 'M_INVALID_PARAM', 'M_BAD_JSON', 'M_NOT_JSON']);
