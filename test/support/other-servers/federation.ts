import {
  type FederationClientConfig,
  type FederationClientSlice,
  federationClientMigrations,
  federationClientSection,
  openFederationClient,
} from '../../../src/federation-client/index.ts';
import { CacheRegistry, cachesSection } from '../../../src/kernel/caches/index.ts';
import { systemClock } from '../../../src/kernel/clock.ts';
import type { Database } from '../../../src/kernel/database/index.ts';
import { silentLogger } from '../../../src/kernel/observability/index.ts';
import { OutboundHttp, outboundSection } from '../../../src/kernel/outbound/index.ts';
import { systemRandomness } from '../../../src/kernel/randomness.ts';
import type { SigningKey } from '../../../src/protocol/index.ts';
import { type EagerClock, eagerClock } from '../clocks/eager-clock.ts';
import type { OpenDatabase } from '../databases/databases.ts';
import { type Overrides, sectionDefaults } from '../inputs/section-defaults.ts';
import { FakeResolver } from '../network/loopback.ts';
import type { TestAuthority } from '../network/test-authority.ts';
import { plainCaches } from '../servers/caches.ts';

export interface TestFederationOptions {
  /** The name of the server that sends requests. */
  readonly name: string;
  /** The key of the server that sends requests. */
  readonly key: SigningKey;
  readonly authority: TestAuthority;
  readonly open: OpenDatabase;
  /** Options that replace the defaults of the section; by default, there are no trusted key servers. */
  readonly options?: Overrides<FederationClientConfig>;
  /** Used in place of a new database. */
  readonly database?: Database;
}

/** The federation client slice of a server, whose requests go to the loopback address. */
export interface TestFederation extends FederationClientSlice {
  readonly clock: EagerClock;
  /** Resolves `a.example`, `b.example` and `far.example`. */
  readonly resolver: FakeResolver;
  readonly database: Database;
  close(): Promise<void>;
}

export async function openTestFederation(parameters: TestFederationOptions): Promise<TestFederation> {
  const { name, key, authority, open, options = {} } = parameters;
  const resolver = new FakeResolver();
  for (const host of ['a.example', 'b.example', 'far.example']) resolver.hosts.set(host, ['127.0.0.1']);
  const config = sectionDefaults(outboundSection, { ip_range_whitelist: ['127.0.0.0/8'] });
  const http = new OutboundHttp({ caches: plainCaches(systemClock), config, clock: systemClock, resolver });
  const clock = eagerClock();
  const database = parameters.database ?? (await open(federationClientMigrations));
  const caches = new CacheRegistry(systemClock, sectionDefaults(cachesSection));
  const slice = await openFederationClient({
    http,
    resolver,
    database,
    caches,
    clock,
    randomness: systemRandomness,
    log: silentLogger,
    serverName: name,
    signingKeys: [key],
    options: sectionDefaults(federationClientSection, {
      federation_custom_ca_list: [authority.path],
      trusted_key_servers: [],
      ...options,
    }),
  });
  return {
    ...slice,
    clock,
    resolver,
    database,
    async close() {
      caches.close();
      await http.close();
    },
  };
}
