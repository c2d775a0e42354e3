import type { KeyRing, OwnKeys } from '../../federation-client/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import { mapConcurrently } from '../../kernel/map-concurrently.ts';
import {
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

/** Servers that are asked for their keys at the same time. */
const maxConcurrentServers = 10;

/** Criteria for the keys of one server. Times are in milliseconds since the epoch, by default the current one. */
export interface KeyCriteria {
  readonly serverName: string;
  /** The selected keys and their required validity; an empty list selects all keys. */
  readonly keys: readonly { readonly keyId: string; readonly validUntil: number | undefined }[];
  /** The required validity when all keys are selected. */
  readonly validUntil?: number | undefined;
}

/**
 * Answers queries for keys of other servers. Source: server-server API, "Querying Keys Through Another
 * Server".
 */
export class Notary {
  readonly #deps: NotaryDeps;

  constructor(deps: NotaryDeps) {
    this.#deps = deps;
  }

  /** Returns the key responses of the servers, with this server's signature added. */
  async answer(questions: readonly KeyCriteria[]): Promise<JsonObject> {
    const answers = await mapConcurrently(questions, maxConcurrentServers, (question) =>
      this.#responses(question),
    );
    return { server_keys: answers.flat().map((response) => this.#sign(response)) };
  }

  async #responses({ serverName, keys: selected, validUntil }: KeyCriteria): Promise<readonly JsonObject[]> {
    const { ownKeys, keys, clock } = this.#deps;
    const now = clock.now();
    if (serverName === ownKeys.serverName) return [ownKeys.publish(now)];
    if (!isServerName(serverName)) return [];
    const wanted = selected.map(({ keyId, validUntil: until = now }) => ({ keyId, validUntil: until }));
    const texts = await keys.responsesOf(serverName, wanted, validUntil ?? now);
    return texts.map((text) => parseJsonObject(text, { numbers: 'as written' }));
  }

  #sign(response: JsonObject): JsonObject {
    const { notaryKeys, ownKeys } = this.#deps;
    return notaryKeys.reduce((signed, key) => signJson(signed, ownKeys.serverName, key), response);
  }
}
