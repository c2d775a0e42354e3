import type { KeyRing, OwnKeys } from '../../federation-client/index.ts';
import type { Clock } from '../../kernel/clock.ts';
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
  /** They sign what is said about others. */
  readonly notaryKeys: readonly SigningKey[];
  readonly clock: Clock;
}

/** A question for keys of one server. */
export interface KeyCriteria {
  readonly serverName: string;
  /** All keys when there are none. */
  readonly keyIds: readonly string[];
  /** Milliseconds since the epoch; now, when absent. */
  readonly validUntil: number | undefined;
}

/** Tells others the keys of servers. Source: server-server API, "Querying Keys Through Another Server". */
export class Notary {
  readonly #deps: NotaryDeps;

  constructor(deps: NotaryDeps) {
    this.#deps = deps;
  }

  /** What the servers have said about their keys, with this server's signature added. */
  async answer(questions: readonly KeyCriteria[]): Promise<JsonObject> {
    const answers = await Promise.all(questions.map((question) => this.#responses(question)));
    return { server_keys: answers.flat().map((response) => this.#sign(response)) };
  }

  async #responses({ serverName, keyIds, validUntil }: KeyCriteria): Promise<readonly JsonObject[]> {
    const { ownKeys, keys, clock } = this.#deps;
    const now = clock.now();
    if (serverName === ownKeys.serverName) return [ownKeys.publish(now)];
    if (!isServerName(serverName)) return [];
    const texts = await keys.responsesOf(serverName, keyIds, validUntil ?? now);
    return texts.map((text) => parseJsonObject(text, { numbers: 'as written' }));
  }

  #sign(response: JsonObject): JsonObject {
    const { notaryKeys, ownKeys } = this.#deps;
    return notaryKeys.reduce((signed, key) => signJson(signed, ownKeys.serverName, key), response);
  }
}
