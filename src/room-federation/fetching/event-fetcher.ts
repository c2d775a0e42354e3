import type { JsonValue } from '../../protocol/index.ts';
import type { VerifiedEvent } from '../../room-engine/index.ts';
import type { InvalidEvents } from '../checking/invalid-events.ts';
import type { ResponseVerifier } from '../checking/response-verifier.ts';
import { requestTimeout, type ServerQuery } from '../querying/server-query.ts';
import type { RemoteEvents } from '../remote-servers.ts';

/** Maximum number of parallel requests to one server. */
const maxParallel = 8;

/** Number of events that are verified together. */
const batchSize = 200;

/** After this number of failed requests of one batch, the server receives no more requests of this call of `fetch`. */
const maxFailures = 20;

/** Fetches single events with `GET /event/{eventId}`, where only a few events are needed. */
export class EventFetcher {
  readonly #remote: RemoteEvents;
  readonly #responses: ResponseVerifier;
  readonly #invalidEvents: InvalidEvents;

  constructor(deps: {
    readonly remote: RemoteEvents;
    readonly responses: ResponseVerifier;
    readonly invalidEvents: InvalidEvents;
  }) {
    this.#remote = deps.remote;
    this.#responses = deps.responses;
    this.#invalidEvents = deps.invalidEvents;
  }

  /**
   * Fetches events from the servers of the query, one server after another; events that no server provides are absent.
   */
  async fetch(query: ServerQuery, eventIds: Iterable<string>): Promise<Map<string, VerifiedEvent>> {
    const missing = new Set(eventIds);
    const fetched = new Map<string, VerifiedEvent>();
    for (const server of await query.servers()) {
      if (missing.size === 0 || query.signal.aborted) break;
      const ids = [...missing].filter(
        (id) => !this.#invalidEvents.mustNotRequest(server, id) && query.claimRequest(server, `event ${id}`),
      );
      for (let start = 0; start < ids.length; start += batchSize) {
        const part = ids.slice(start, start + batchSize);
        const { jsons, gaveUp } = await this.#request(query, server, part);
        const isWanted = ({ eventId }: { eventId: string }) => missing.has(eventId);
        for (const [id, event] of await this.#responses.verifyWanted(query, server, jsons, isWanted)) {
          fetched.set(id, event);
          missing.delete(id);
        }
        if (gaveUp) break;
      }
    }
    return fetched;
  }

  async #request({ signal }: ServerQuery, server: string, ids: readonly string[]) {
    const jsons: JsonValue[] = [];
    let next = 0;
    let failures = 0;
    const requestNext = async () => {
      while (next < ids.length && failures < maxFailures && !signal.aborted) {
        const id = ids[next++]!;
        try {
          jsons.push(await this.#remote.event(server, id, { signal, timeout: requestTimeout.short }));
        } catch {
          failures++;
        }
      }
    };
    await Promise.all(Array.from({ length: Math.min(maxParallel, ids.length) }, requestNext));
    return { jsons, gaveUp: failures >= maxFailures };
  }
}
