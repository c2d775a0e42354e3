import type { KeyRing, OwnKeys } from '../../federation-client/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import { mapConcurrently } from '../../kernel/map-concurrently.ts';
import { TimeSlices } from '../../kernel/time-slices.ts';
import {
  canonicalJson,
  isServerName,
  type JsonObject,
  parseJsonObject,
  type SigningKey,
  signJson,
} from '../../protocol/index.ts';

export interface NotaryDeps {
  readonly ownKeys: OwnKeys;
  readonly keys: KeyRing;
  /** Keys that sign the notary's responses. */
  readonly notaryKeys: readonly SigningKey[];
  readonly clock: Clock;
}

/** Maximum number of concurrent requests to servers for their keys, for one query. */
const maxConcurrentServers = 10;

/**
 * Maximum number of servers that one query may cause requests to: a request to a server that does not exist takes 3 ms
 * of CPU. For further servers, only the stored keys are returned.
 */
const maxRequestedServers = 40;

/** Milliseconds after which a query begins no further request. */
const maxRequestTime = 15_000;

/** Number of servers whose stored responses are read at the same time, for one answer. */
const serversPerRead = 8;

/** Maximum bytes of one answer; the keys of a thousand servers have about 1 MiB. Further responses are left out. */
const maxAnswerBytes = 8 * 1024 * 1024;

/** Criteria for the keys of one server. Times are in milliseconds since the epoch, by default the current time. */
export interface KeyCriteria {
  readonly serverName: string;
  /** The selected keys and their required validity; an empty list selects all keys. */
  readonly keys: readonly { readonly keyId: string; readonly validUntil: number | undefined }[];
  /** The required validity when all keys are selected. */
  readonly validUntil?: number | undefined;
}

/** Answers queries for keys of other servers. Source: server-server API, "Querying Keys Through Another Server". */
export class Notary {
  readonly #deps: NotaryDeps;

  constructor(deps: NotaryDeps) {
    this.#deps = deps;
  }

  /**
   * Requests keys from servers whose stored keys do not meet the criteria: from at most `maxRequestedServers` servers.
   * @param signal prevents further requests; requests that have begun are not stopped
   * @param mayRequest called before each request; returns whether it may be sent
   */
  async refresh(
    criteria: readonly KeyCriteria[],
    signal: AbortSignal,
    mayRequest: () => boolean,
  ): Promise<void> {
    const { ownKeys, keys, clock } = this.#deps;
    const deadline = clock.monotonic() + maxRequestTime;
    let remainingServers = maxRequestedServers;
    const isAllowed = () => clock.monotonic() < deadline && remainingServers-- > 0 && mayRequest();
    const remoteCriteria = criteria.filter(
      ({ serverName }) => serverName !== ownKeys.serverName && isServerName(serverName),
    );
    await mapConcurrently(
      remoteCriteria,
      maxConcurrentServers,
      async ({ serverName, keys: selected, validUntil }) => {
        if (signal.aborted) return;
        const now = clock.now();
        const wanted = selected.map(({ keyId, validUntil: until = now }) => ({ keyId, validUntil: until }));
        await keys.refresh(serverName, wanted, validUntil ?? now, isAllowed);
      },
    );
  }

  /**
   * Yields the stored key responses of the servers, with this server's signature added, as canonical JSON. Reads them
   * as they are sent, so that a long answer is never in memory as a whole.
   */
  async *responses(criteria: readonly KeyCriteria[]): AsyncGenerator<readonly string[]> {
    const slices = new TimeSlices(this.#deps.clock);
    let remainingBytes = maxAnswerBytes;
    for (let start = 0; start < criteria.length; start += serversPerRead) {
      const chunk = criteria.slice(start, start + serversPerRead);
      const read = await mapConcurrently(chunk, serversPerRead, (ofServer) => this.#responses(ofServer));
      const signed: string[] = [];
      for (const response of read.flat()) {
        const text = this.#sign(response);
        remainingBytes -= Buffer.byteLength(text);
        if (remainingBytes >= 0) signed.push(text);
        const pause = slices.pauseIfDue();
        if (pause) await pause;
      }
      yield signed;
      if (remainingBytes < 0) return;
    }
  }

  async #responses({ serverName, keys: selected }: KeyCriteria): Promise<readonly (JsonObject | string)[]> {
    const { ownKeys, keys, clock } = this.#deps;
    if (serverName === ownKeys.serverName) return [ownKeys.publish(clock.now())];
    if (!isServerName(serverName)) return [];
    return keys.responsesOf(
      serverName,
      selected.map(({ keyId }) => keyId),
    );
  }

  #sign(response: JsonObject | string): string {
    const { notaryKeys, ownKeys } = this.#deps;
    const json =
      typeof response === 'string' ? parseJsonObject(response, { numbers: 'as written' }) : response;
    const signed = notaryKeys.reduce((object, key) => signJson(object, ownKeys.serverName, key), json);
    return canonicalJson(signed, 'as written');
  }
}
