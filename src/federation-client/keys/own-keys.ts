import {
  type JsonObject,
  type ServerKey,
  type SigningKey,
  signJson,
  VerifyKey,
} from '../../protocol/index.ts';
import type { FederationClientConfig } from '../config.ts';

export interface OwnKeysOptions {
  readonly serverName: string;
  /** Current keys, at least one; the first one signs events and requests. */
  readonly signingKeys: readonly SigningKey[];
  readonly options: Pick<FederationClientConfig, 'old_signing_keys' | 'key_refresh_interval'>;
}

/** The keys of this server. */
export class OwnKeys {
  readonly serverName: string;
  readonly #signingKeys: readonly SigningKey[];
  readonly #old: ReadonlyMap<string, { readonly key: VerifyKey; readonly expiredTs: number }>;
  readonly #validity: number;

  constructor({ serverName, signingKeys, options }: OwnKeysOptions) {
    this.serverName = serverName;
    this.#signingKeys = signingKeys;
    this.#validity = options.key_refresh_interval;
    const inUse = new Set(signingKeys.map(({ keyId }) => keyId));
    this.#old = new Map(
      Object.entries(options.old_signing_keys).flatMap(([keyId, { key: text, expired_ts: expiredTs }]) => {
        const key = VerifyKey.fromBase64(text);
        return key === undefined || inUse.has(keyId) ? [] : [[keyId, { key, expiredTs }]];
      }),
    );
  }

  /** Returns a key of this server in the form in which keys of other servers are stored, valid without end. */
  find(keyId: string): ServerKey | undefined {
    const validUntilTs = Number.MAX_SAFE_INTEGER;
    const current = this.#signingKeys.find((key) => key.keyId === keyId);
    if (current !== undefined) return { key: current.publicKey, validUntilTs };
    const old = this.#old.get(keyId);
    return old && { ...old, validUntilTs };
  }

  /**
   * Returns the published keys of this server, signed with all current keys.
   * Source: server-server API, "Publishing Keys".
   * @param now milliseconds since the epoch
   */
  publish(now: number): JsonObject {
    const current = this.#signingKeys.map(({ keyId, publicKey }) => [keyId, { key: publicKey.base64 }]);
    const old = [...this.#old].map(([keyId, { key, expiredTs }]) => {
      return [keyId, { key: key.base64, expired_ts: expiredTs }];
    });
    const content: JsonObject = {
      server_name: this.serverName,
      verify_keys: Object.fromEntries(current),
      old_verify_keys: Object.fromEntries(old),
      valid_until_ts: Math.min(now + this.#validity, Number.MAX_SAFE_INTEGER),
    };
    return this.#signingKeys.reduce((signed, key) => signJson(signed, this.serverName, key), content);
  }
}
