import { readFile } from 'node:fs/promises';
import type { Clock } from '../../kernel/clock.ts';
import { LoadOnce } from '../../kernel/load-once.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { fetchConfigured, type OperatorRequests } from '../operator-requests.ts';
import { readMetadataOffThread } from './read-metadata.ts';
import type { SamlIdentityProvider } from './saml-metadata.ts';
import type { ServiceProviderConfig } from './service-provider-config.ts';

export interface SamlMetadataDeps extends OperatorRequests {
  readonly clock: Clock;
  readonly log: Logger;
}

/** The identity providers of the metadata. */
export interface SamlIdentityProviders {
  readonly list: readonly SamlIdentityProvider[];
  /** Whether the list contains several providers. Users of different providers may have the same id. */
  readonly areSeveral: boolean;
}

/** Milliseconds until metadata must have arrived. */
const timeout = 10_000;

/** Maximum bytes of metadata. */
const maxBody = 16 * 1024 * 1024;

/** Milliseconds until metadata is read again. */
const maxAge = 3_600_000;

/** Milliseconds until the next attempt after a failure. */
const retryAfter = 60_000;

/** Milliseconds until the next attempt while there is no usable metadata: short, because all logins fail until then. */
const retryWithoutMetadata = 5_000;

/** Maximum age of metadata that cannot be read again, in milliseconds. */
const maxStale = 24 * 3_600_000;

/** Reads and caches the metadata of identity providers, which is in files and at URLs. */
export class SamlMetadataSource {
  readonly #deps: SamlMetadataDeps;
  readonly #sources: Pick<ServiceProviderConfig, 'local' | 'remote'>;
  readonly #onlyEntityId: string | null;
  readonly #reading = new LoadOnce<'metadata', SamlIdentityProviders>();
  #cached: { readonly providers: SamlIdentityProviders; readonly readAt: number } | undefined;
  /** The last failure to read, while there is no usable metadata. */
  #failure: { readonly error: unknown } | undefined;
  /** When the metadata is read again, in milliseconds since the epoch. */
  #nextAt = 0;

  /** @param only entity id of the only identity provider that may be used; null allows all of the metadata */
  constructor(
    deps: SamlMetadataDeps,
    sp: Pick<ServiceProviderConfig, 'local' | 'remote'>,
    only: string | null,
  ) {
    this.#deps = deps;
    this.#sources = sp;
    this.#onlyEntityId = only;
  }

  /** @throws Error when there is no usable metadata */
  async providers(): Promise<SamlIdentityProviders> {
    const { clock, log } = this.#deps;
    const cached = this.#cached;
    if (clock.now() < this.#nextAt) {
      if (this.#failure !== undefined) throw this.#failure.error;
      if (cached !== undefined) return cached.providers;
    }
    try {
      return await this.#reading.run('metadata', () => this.#load());
    } catch (err) {
      if (cached === undefined || clock.now() - cached.readAt > maxStale) {
        this.#failure = { error: err };
        this.#nextAt = clock.now() + retryWithoutMetadata;
        throw err;
      }
      log.warn(
        { err },
        'Failed to read the metadata of SAML identity providers again; the older metadata is used',
      );
      this.#nextAt = clock.now() + retryAfter;
      return cached.providers;
    }
  }

  async #load(): Promise<SamlIdentityProviders> {
    const texts = await Promise.all([
      ...this.#sources.local.map((path) => readFile(path, 'utf8')),
      ...this.#sources.remote.map((url) => this.#fetch(url)),
    ]);
    const found: SamlIdentityProvider[] = [];
    for (const text of texts) found.push(...(await readMetadataOffThread(text, this.#deps.clock)));
    const list = found.filter(
      ({ entityId }) => this.#onlyEntityId === null || entityId === this.#onlyEntityId,
    );
    if (list.length === 0) throw new Error('the metadata contains no identity provider that can be used');
    const providers = { list, areSeveral: new Set(list.map(({ entityId }) => entityId)).size > 1 };
    const readAt = this.#deps.clock.now();
    this.#cached = { providers, readAt };
    this.#failure = undefined;
    this.#nextAt = readAt + maxAge;
    return providers;
  }

  async #fetch(url: string): Promise<string> {
    const { status, body } = await fetchConfigured(this.#deps, new URL(url), {
      timeout,
      maxBody,
      redirects: 3,
    });
    if (status !== 200) throw new Error(`${url} responded ${status}`);
    return body.toString('utf8');
  }
}
